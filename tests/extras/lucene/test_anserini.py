"""Files for Anserini, read back and ranked as Lucene ranks them: by sums of integers."""

import collections
import json

import numpy as np
import pytest

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.extras.lucene import anserini, bulk_files
from tf_smoothclir.extras.lucene.anserini import write_anserini
from tf_smoothclir.index.document_collections import open_collection
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_models import load_models


@pytest.fixture(scope="module")
def lexical(ranking_runs):
    run = ranking_runs["lexical"]
    return LexicalParts(load_models(run)["lexical"], run.vocabulary, run.settings().text)


def read(directory):
    """Documents by id, in order, and topics by id, as Anserini's readers see them."""
    documents = {}
    for path in sorted((directory / "documents").iterdir()):
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


@pytest.mark.parametrize("bits", [4, 16])
def test_sums_of_integers_are_the_scores_up_to_half_a_step_a_word(
    ranking_runs, lexical, tmp_path, monkeypatch, bits
):
    run = ranking_runs["lexical"]
    monkeypatch.setattr(anserini, "DOCUMENTS_PER_FILE", 10)
    monkeypatch.setattr(bulk_files, "DOCUMENTS_AT_ONCE", 5)
    source = source_of(run.settings().data)
    collection = source
    written = write_anserini(tmp_path / "out", lexical, collection, source.queries(), bits=bits)
    documents, topics = read(tmp_path / "out")
    assert len(list((tmp_path / "out" / "documents").iterdir())) == 3
    assert [(id_, record["contents"]) for id_, record in documents.items()] == [
        (text.id, text.text) for text in source.documents()
    ]
    values = [value for record in documents.values() for value in record["vector"].values()]
    assert all(type(value) is int and value > 0 for value in values)
    assert max(values) == 2**bits - 1
    tokenized_set = tokenized_set_of(source, run.settings(), run, ("test",))
    query_ids = tokenized_set.retrieval_set.query_ids
    rows = load_models(run).retrievers(tokenized_set)["lexical"].rows  # without feedback
    for query_id, row in zip(query_ids, rows(np.arange(len(query_ids)))):
        words = topics[query_id]
        assert len(words) == 2
        found = np.array(lucene_scores(documents, words)) * written.step
        assert np.abs(found - row).max() <= len(words) * written.step / 2 + 1e-5
    assert (written.documents, written.topics) == (len(documents), len(query_ids))
    assert json.loads((tmp_path / "out" / "anserini.json").read_text())["step"] == written.step


def test_queries_and_documents_without_a_known_word(lexical, tmp_path, caplog):
    (tmp_path / "documents.tsv").write_text("1\tnothing known\n2\t!\n")
    collection = open_collection(str(tmp_path / "documents.tsv"), DataSettings())
    queries = [Text("a", "", "word1 word1 unheard"), Text("b", "", "unheard"), Text("c", "", "")]
    with caplog.at_level("WARNING", logger="absl"):
        write_anserini(tmp_path / "out", lexical, collection, queries)
    documents, topics = read(tmp_path / "out")
    assert [record["vector"] for record in documents.values()] == [{}, {}]
    assert topics == {"a": ["word1", "word1"]}
    assert "2 queries have no known word" in caplog.text
    write_anserini(tmp_path / "without", lexical, collection, ())
    assert not (tmp_path / "without" / "topics.tsv").exists()


def test_the_command_writes_a_set_and_refuses_to_write_over_it(commands, ranking_exports, tmp_path):
    arguments = [f"--export_dir={ranking_exports['lexical']}", f"--output_dir={tmp_path / 'out'}"]
    module = "tf_smoothclir.extras.lucene.write_files"
    done = commands.run(module, *arguments)
    assert "30 documents of" in done.stdout, done.stderr
    again = commands.run(module, *arguments)
    assert "it is there already. Give a new one" in again.stderr
