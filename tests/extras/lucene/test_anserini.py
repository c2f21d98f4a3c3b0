"""Files for Anserini, read back and ranked as Lucene ranks them: by sums of integers."""

from __future__ import annotations

import collections
import json

import numpy as np
import pytest
import scipy.sparse as sp

from tests.published import CUT_POINTS
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.extras.lucene import anserini
from tf_smoothclir.extras.lucene.anserini import quantized, write_anserini
from tf_smoothclir.index.document_collections import SourceCollection, open_collection
from tf_smoothclir.publishing.exported_lexical import ExportedLexical, LexicalParts
from tf_smoothclir.publishing.version_writer import PairInfo, publish_version
from tf_smoothclir.training.retrievers import load_models
from tf_smoothclir.training.train import tokenized_set_of


@pytest.fixture(scope="module")
def run(ranking_runs):
    return ranking_runs["lexical"]


@pytest.fixture(scope="module")
def lexical(run):
    settings = run.settings()
    return LexicalParts(load_models(run).lexical, run.vocabulary, settings.text)


@pytest.fixture(scope="module")
def source(run):
    return source_of(run.settings().data)


def read(directory):
    """Documents by id, in order, and topics by id, as Anserini's readers see them."""
    documents = {}
    for path in sorted((directory / "documents").iterdir()):
        assert path.suffix == ".jsonl"
        for line in path.read_text(encoding="utf-8").splitlines():
            record = json.loads(line)
            assert record.keys() == {"id", "contents", "vector"}
            documents[record["id"]] = record
    lines = (directory / "topics.tsv").read_text(encoding="utf-8").splitlines()
    return documents, {id_: words.split() for id_, words in (line.split("\t") for line in lines)}


def lucene_scores(documents, words):
    """A term query for each word, whose score is how often the document has it."""
    asked = collections.Counter(words)
    return [
        sum(times * record["vector"].get(word, 0) for word, times in asked.items())
        for record in documents.values()
    ]


@pytest.fixture
def write(lexical, source, tmp_path):
    """`write()` writes the set; returns what it says, documents and topics."""

    def write_and_read(queries=None, **options):
        queries = source.queries() if queries is None else queries
        directory = tmp_path / "out"
        written = write_anserini(directory, lexical, SourceCollection(source), queries, **options)
        return written, *read(directory)

    return write_and_read


@pytest.mark.parametrize("bits", [4, 8, 16])
def test_sums_of_integers_are_the_scores_up_to_half_a_step_a_word(
    run, source, write, tmp_path, bits
):
    written, documents, topics = write(bits=bits)
    tokenized_set = tokenized_set_of(source, run.settings(), run, ("test",))
    retrieval_set = tokenized_set.retrieval_set
    rows = load_models(run).retrievers(tokenized_set)["lexical"].rows  # without feedback
    scores = rows(np.arange(len(retrieval_set.query_ids)))
    assert list(documents) == retrieval_set.document_ids
    largest = max(value for record in documents.values() for value in record["vector"].values())
    assert largest == 2**bits - 1
    for query_id, row in zip(retrieval_set.query_ids, scores):
        words = topics[query_id]
        found = np.array(lucene_scores(documents, words)) * written.step
        assert np.abs(found - row).max() <= len(words) * written.step / 2 + 1e-5
    assert written.documents == len(documents)
    assert written.topics == len(topics) == len(retrieval_set.query_ids)
    assert json.loads((tmp_path / "out" / "anserini.json").read_text())["step"] == written.step


def test_many_documents_are_several_files_of_positive_integers_and_texts(
    source, write, tmp_path, monkeypatch
):
    monkeypatch.setattr(anserini, "DOCUMENTS_PER_FILE", 10)
    monkeypatch.setattr(anserini, "_DOCUMENTS_AT_ONCE", 5)
    _, documents, topics = write()
    names = sorted(path.name for path in (tmp_path / "out" / "documents").iterdir())
    assert names == [f"part-0000{part}.jsonl" for part in range(3)]
    texts = {text.id: text.text for text in source.documents()}
    assert {id_: record["contents"] for id_, record in documents.items()} == texts
    assert list(documents) == list(texts)
    for record in documents.values():
        assert all(type(value) is int and value > 0 for value in record["vector"].values())
        assert not any(set(word) & set(" \t\n") for word in record["vector"])
    assert [len(topics[text.id]) for text in source.queries()] == [2] * len(topics)


def test_queries_without_a_known_word_are_left_out(write, caplog):
    queries = [Text("a", "", "word1 word1 unheard"), Text("b", "", "unheard"), Text("c", "", "")]
    with caplog.at_level("WARNING", logger="absl"):
        _, _, topics = write(queries)
    assert topics == {"a": ["word1", "word1"]}
    assert "2 queries have no known word" in caplog.text


def test_words_that_no_document_can_match_give_empty_vectors(lexical, tmp_path):
    (tmp_path / "documents.tsv").write_text("1\tnothing known\n2\t!\n")
    collection = open_collection(str(tmp_path / "documents.tsv"), None)
    written = write_anserini(tmp_path / "out", lexical, collection, ())
    assert written.documents == 2
    assert not (tmp_path / "out" / "topics.tsv").exists()
    assert '"vector": {}' in (tmp_path / "out" / "documents" / "part-00000.jsonl").read_text()


def test_rounding_drops_what_is_less_than_half_a_step():
    impacts = sp.csr_array(np.array([[0.24, 0.26, 0.0, 2.0]], np.float32))
    found = quantized(impacts, 0.5)
    assert found.toarray().tolist() == [[0, 1, 0, 4]]
    assert found.nnz == 2


def test_the_command_writes_a_set_and_refuses_to_write_over_it(commands, run, lexical, tmp_path):
    parts = {"lexical": ExportedLexical(lexical)}
    info = PairInfo(0, 0.0, (0.2, 0.7), run.settings().data, CUT_POINTS)
    texts = {"query": [b"word1"], "document": [b"mot1"]}

    class Agreed:
        def __getattr__(self, name):
            return lambda *_, **__: None

    publish_version(parts, tmp_path / "export", info, texts, Agreed())
    arguments = [f"--export_dir={tmp_path / 'export'}", f"--output_dir={tmp_path / 'out'}"]
    module = "tf_smoothclir.extras.lucene.write_anserini"
    done = commands.run(module, *arguments)
    assert done.returncode == 0, done.stderr
    assert "30 documents of" in done.stdout
    assert "20 topics; an impact of 1 is a score of" in done.stdout
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"anserini.json", "documents", "topics.tsv"}
    again = commands.run(module, *arguments)
    assert again.returncode != 0
    assert "it is there already. Give a new one" in again.stderr
