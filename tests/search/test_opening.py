"""Search of an export: ranks as the raw model does, builds what is missing, refuses mixed parts."""

import dataclasses
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import maths
from tests.published import EPSILON
from tests.storage.changed import rewrite
from tests.training.test_run_directory import snapshot
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.families.dense import training_query_vectors
from tf_smoothclir.index.builder import build_index, export_halves
from tf_smoothclir.index.document_collections import open_files
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.utils.errors import InputError

QUERY = "word1 word4 word2"


def the_same(trained_on):
    return trained_on


@pytest.fixture(scope="module")
def index_dir(export_dir, tmp_path_factory):
    path = tmp_path_factory.mktemp("index") / "index"
    open_search(export_dir, path, the_same)
    return path


@pytest.fixture(scope="module")
def search(export_dir, index_dir):
    return open_search(export_dir, index_dir, the_same)


def raw_vectors(run, role, texts):
    encoder = TextEncoder(run.vocabulary / f"{role}.txt", 200)
    return getattr(load_model(run), f"{role}_tower")(encoder(tf.constant(texts))).numpy()


def brute_force(run, query):
    """Documents by falling SCS of the raw towers, equal scores by the hash of the id; not empty."""
    documents = list(source_of(run.settings().data).documents())
    vectors = raw_vectors(run, "document", [document.text for document in documents])
    (vector,) = raw_vectors(run, "query", [query])
    scores = [np.float32(maths.smooth_cosine(vector, other, EPSILON)) for other in vectors]
    hashes = hash_ids([document.id for document in documents])
    order = sorted(range(len(documents)), key=lambda i: (-scores[i].round(6), hashes[i]))
    return [(documents[i][:3], scores[i]) for i in order if scores[i]]


@pytest.mark.parametrize("query", [QUERY, "word8", "word3 unheard"])
def test_ranks_as_brute_force_over_the_raw_model(search, tiny_run, query):
    (results,) = search.search([query], DOCUMENTS)
    expected = brute_force(tiny_run, query)
    assert [r.rank for r in results] == list(range(1, DOCUMENTS))  # one document is empty
    np.testing.assert_allclose([r.score for r in results], [s for _, s in expected], atol=1e-6)
    assert [(r.id, r.title, r.text) for r in results] == [tuple(d) for d, _ in expected]


def test_queries_of_a_batch_are_answered_as_alone_and_without_a_known_word_by_nothing(search):
    unknown = {"": (), " \t": (), "zebra": ("zebra",), "unheard ÄÖ!": ("unheard", "äö")}
    queries = [QUERY, *unknown, "word8"]
    together = search.search(queries, 5)
    assert together == [search.search([query], 5)[0] for query in queries]
    assert [len(hits) for hits in together] == [5, 0, 0, 0, 0, 5]
    assert search.read([*unknown]) == [QueryReading("nothing", words) for words in unknown.values()]
    assert search.search([], 5) == []


def test_index_is_enough_where_its_collection_has_changed_or_is_gone(
    export_dir, tiny_run, tmp_path, caplog
):
    data = shutil.copytree(tiny_run.settings().data.data_dir, tmp_path / "data")
    settings = dataclasses.replace(tiny_run.settings().data, data_dir=str(data))
    path, collection = tmp_path / "index", source_of(settings)
    build_index(path, collection, *export_halves(export_dir), data=settings)
    open_search(export_dir, path, the_same)
    assert "has changed" not in caplog.text
    with open(data / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write(f"{DOCUMENTS}\tNouveau\tmot1 mot1\n")
    search = open_search(export_dir, path, the_same)
    assert "data-en-fr has changed since it was indexed" in caplog.text
    assert "smoothclir-index --update" in caplog.text
    assert len(search.search([QUERY], 1000)[0]) == DOCUMENTS - 1  # one is empty
    shutil.rmtree(data)
    assert len(open_search(export_dir, path, the_same).search([QUERY], 3)[0]) == 3


def test_index_of_an_earlier_training_is_refused_and_named(export_dir, tmp_path):
    export = shutil.copytree(export_dir, tmp_path / "an export")
    (tmp_path / "own.tsv").write_text("a\tmot1 mot2\nb\tmot3\n")
    collection = open_files(tmp_path / "own.tsv", "--collection")
    build_index(export / "index", collection, *export_halves(export))
    for part in ("query_tower", "document_tower"):
        shutil.copytree(export / part / "1", export / part / "2")
        rewrite(export / part / "2", version=2, pair_id="f" * 64)
    before = snapshot(export)
    with pytest.raises(InputError, match=r"different training run.* index of .*own\.tsv again"):
        open_search(export, "", the_same)
    assert snapshot(export) == before


def test_queries_of_the_run_measure_the_recall_if_they_are_there(
    export_dir, tiny_run, monkeypatch, caplog
):
    def gone(settings):
        raise InputError("data: there is no such directory")

    texts = [text.text for text in source_of(tiny_run.settings().data).queries()]
    raw = raw_vectors(tiny_run, "query", texts)
    expected = raw / (np.linalg.norm(raw, axis=1, keepdims=True) + EPSILON)
    models = load_exported_models(export_dir)
    asked = models["dense"], models.manifest.data
    np.testing.assert_allclose(training_query_vectors(*asked), expected, atol=1e-6)
    monkeypatch.setattr("tf_smoothclir.families.dense.source_of", gone)
    assert training_query_vectors(*asked) is None
    assert "no such directory" in caplog.text


def test_command_answers_in_json_as_a_search_does(commands, export_dir, index_dir, search):
    queries = [QUERY, "", "unheard ÄÖ", "word1 caf\ufffd"]
    typed = "".join(f"{query}\n" for query in queries).replace("\ufffd", "\udce9")  # no UTF-8
    flags = [f"--export_dir={export_dir}", f"--index_dir={index_dir}", "--json", "--top_k=5"]
    done = commands.run("export.search", *flags, stdin=typed)
    given = commands.run("export.search", *flags, f"--query={QUERY}")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(given.stdout)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [answer["query"] for answer in answers] == queries
    assert [answer["evidence"] for answer in answers] == ["words", "nothing", "nothing", "words"]
    for answer, results in zip(answers, search.search(queries, 5)):
        expected = [dataclasses.asdict(result) for result in results]
        scores = [result.pop("score") for result in answer["results"]]
        assert scores == pytest.approx([result.pop("score") for result in expected], abs=1e-6)
        assert answer["results"] == expected
