"""Search of an export: ranks as the raw model does, builds what is missing, refuses mixed parts."""

import dataclasses
import json
import shlex
import shutil
import subprocess
import sys
import types

import numpy as np
import pytest
import tensorflow as tf

from tests.oracles import maths
from tests.published import EPSILON
from tests.server.local_server import grpc_server, local_server
from tests.training.test_run_directory import snapshot
from tests.training.tiny_set import DOCUMENTS
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.export_halves import export_halves, training_query_vectors
from tf_smoothclir.protocols.text_search import QueryReading
from tf_smoothclir.publishing.export_directory import load_tower
from tf_smoothclir.publishing.exported_models import load_exported_models
from tf_smoothclir.search.opening import open_search
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.utils.digests import with_own_digest
from tf_smoothclir.utils.errors import InputError

QUERY = "word1 word4 word2"


def the_same(trained_on):
    return trained_on


@pytest.fixture(scope="module")
def index_dir(export_dir, tmp_path_factory):
    """The index of the collection; read-only."""
    path = tmp_path_factory.mktemp("index") / "index"
    open_search(export_dir, path, the_same)
    return path


@pytest.fixture(scope="module")
def search(export_dir, index_dir):
    return open_search(export_dir, index_dir, the_same)


@pytest.fixture
def own_index(index_dir, tmp_path):
    """A copy of the index that may be changed."""
    return shutil.copytree(index_dir, tmp_path / "index")


def raw_vectors(run, role, texts):
    """Outputs of a tower, before any normalisation."""
    encoder = TextEncoder(run.vocabulary / f"{role}.txt", 200)
    return getattr(load_model(run), f"{role}_tower")(encoder(tf.constant(texts))).numpy()


def brute_force(run, query):
    """Documents by falling SCS of the raw towers; equal scores by the hash of the id."""
    documents = list(source_of(run.settings().data).documents())
    vectors = raw_vectors(run, "document", [document.text for document in documents])
    (vector,) = raw_vectors(run, "query", [query])
    scores = [np.float32(maths.smooth_cosine(vector, other, EPSILON)) for other in vectors]
    hashes = hash_ids([document.id for document in documents])
    order = sorted(range(len(documents)), key=lambda i: (-scores[i].round(6), hashes[i]))
    return [(documents[i], scores[i]) for i in order]


@pytest.mark.parametrize(
    ("query", "unknown"),
    [("", ()), (" \t", ()), ("zebra", ("zebra",)), ("unheard ÄÖ!", ("unheard", "äö"))],
)
def test_query_without_a_known_word_finds_nothing(search, query, unknown):
    assert search.search([query, QUERY], 3)[0] == []
    assert search.read([query]) == [QueryReading("nothing", unknown)]
    assert len(search.search([query, QUERY], 3)[1]) == 3


@pytest.mark.parametrize("query", [QUERY, "word8", "word3 unheard"])
def test_ranks_as_brute_force_over_the_raw_model(search, tiny_run, query):
    (results,) = search.search([query], DOCUMENTS)
    expected = brute_force(tiny_run, query)
    assert [r.rank for r in results] == list(range(1, DOCUMENTS + 1))
    np.testing.assert_allclose([r.score for r in results], [s for _, s in expected], atol=1e-6)
    assert [(r.id, r.title, r.text) for r in results] == [tuple(d) for d, _ in expected]


def test_queries_of_a_batch_are_answered_as_alone(search):
    queries = [QUERY, "", "word8"]
    together = search.search(queries, 5)
    assert together == [search.search([query], 5)[0] for query in queries]
    assert search.search([], 5) == []


def test_index_that_is_there_is_used_as_it_is(export_dir, index_dir):
    before = snapshot(index_dir)
    open_search(export_dir, index_dir, the_same)
    assert snapshot(index_dir) == before


def test_other_collection_than_that_of_the_index_is_refused(export_dir, own_index, tmp_path):
    def another(trained_on):
        return dataclasses.replace(the_same(trained_on), data_dir="", toy_entities=300)

    before = snapshot(own_index)
    with pytest.raises(InputError, match=r"another state of it: data-en-fr.*--overwrite"):
        open_search(export_dir, own_index, another)
    assert snapshot(own_index) == before


@pytest.fixture
def index_of_a_copy(export_dir, tiny_run, tmp_path):
    """An index and the directory of its collection, which may be changed."""
    data = shutil.copytree(tiny_run.settings().data.data_dir, tmp_path / "data")
    settings = dataclasses.replace(tiny_run.settings().data, data_dir=str(data))
    collection = SourceCollection(source_of(settings))
    build_index(tmp_path / "index", collection, *export_halves(export_dir), data=settings)
    return tmp_path / "index", data


def test_changed_collection_is_a_warning(export_dir, index_of_a_copy, caplog):
    path, data = index_of_a_copy
    open_search(export_dir, path, the_same)
    assert "has changed" not in caplog.text
    with open(data / "wiki_fr.documents", "a", encoding="utf-8") as file:
        file.write(f"{DOCUMENTS}\tNouveau\tmot1 mot1\n")
    search = open_search(export_dir, path, the_same)
    assert "data-en-fr has changed since it was indexed" in caplog.text
    assert "smoothclir-index --overwrite" in caplog.text
    assert len(search.search([QUERY], 1000)[0]) == DOCUMENTS


def test_index_is_enough_where_its_collection_is_gone(export_dir, index_of_a_copy):
    path, data = index_of_a_copy
    shutil.rmtree(data)
    (results,) = open_search(export_dir, path, the_same).search([QUERY], 3)
    assert len(results) == 3


def test_index_of_another_run_is_refused(export_dir, own_index):
    manifest = json.loads((own_index / "manifest.json").read_text())
    changed = with_own_digest({**manifest, "pair_id": "f" * 64})
    (own_index / "manifest.json").write_text(json.dumps(changed))
    before = snapshot(own_index)
    with pytest.raises(InputError, match="comes from a different training run") as error:
        open_search(export_dir, own_index, the_same)
    command = ["smoothclir-index", f"--export_dir={export_dir}", f"--index_dir={own_index}"]
    remedy = f"Build the index again: {shlex.join([*command, '--overwrite'])}."
    assert str(error.value).endswith(remedy)
    assert snapshot(own_index) == before


def test_directory_that_is_no_index_is_refused_and_not_deleted(export_dir, tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match=r"this is not a manifest with the role 'index'"):
        open_search(export_dir, tmp_path, the_same)
    assert snapshot(tmp_path) == before


def test_failure_while_indexing_leaves_no_index(export_dir, tmp_path, monkeypatch):
    def fail(*arguments, **keywords):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("tf_smoothclir.index.builder.file_digests", fail)
        with pytest.raises(KeyboardInterrupt):
            open_search(export_dir, tmp_path / "index", the_same)
    assert [path.name for path in tmp_path.iterdir()] == ["index.building"]
    open_search(export_dir, tmp_path / "index", the_same)
    assert [path.name for path in tmp_path.iterdir()] == ["index"]


@pytest.mark.parametrize("role", ["document", "query"])
def test_words_carry_the_scores_of_the_search(search, role):
    (results,) = search.search([QUERY], DOCUMENTS)
    explanations = search.explain(QUERY, results, role)
    assert len(explanations) == len(results)
    for result, explanation in zip(results, explanations):
        assert explanation.score == pytest.approx(result.score, abs=1e-6)
        text = result.text if role == "document" else QUERY
        assert {word.word for word in explanation.words} == set(text.split())
        total = sum(word.share for word in explanation.words) + explanation.remainder
        assert total == pytest.approx(explanation.score, abs=1e-12)
    assert search.explain(QUERY, [], role) == []


def test_queries_of_the_run_measure_the_recall(export_dir, tiny_run):
    texts = [text.text for text in source_of(tiny_run.settings().data).queries()]
    raw = raw_vectors(tiny_run, "query", texts)
    expected = raw / (np.linalg.norm(raw, axis=1, keepdims=True) + EPSILON)
    np.testing.assert_allclose(
        training_query_vectors(load_exported_models(export_dir)), expected, atol=1e-6
    )


def test_there_may_be_no_queries_of_the_run(export_dir, monkeypatch, caplog):
    def gone(settings):
        raise InputError("data: there is no such directory")

    monkeypatch.setattr("tf_smoothclir.index.export_halves.source_of", gone)
    assert training_query_vectors(load_exported_models(export_dir)) is None
    assert "no such directory" in caplog.text


@pytest.fixture
def server(export_dir, monkeypatch):
    """A stand-in for the client of a model server; its `pair` may be set."""
    encode, manifest = load_tower(export_dir, "query")
    state = types.SimpleNamespace(pair=manifest.pair_id, asked=[], extra=0)

    class ServingClient:
        def __init__(self, address):
            assert address == "localhost:8500"

        def pair_id(self, role):
            assert role == "query"
            return state.pair

        def encode_queries(self, texts):
            state.asked += texts
            vectors = encode(text=tf.constant(list(texts)))["vector"].numpy()
            return np.pad(vectors, [(0, 0), (0, state.extra)]), [("words", "")] * len(texts)

    module = types.SimpleNamespace(ServingClient=ServingClient)
    monkeypatch.setitem(sys.modules, "tf_smoothclir.client.serving_client", module)
    return state


def test_queries_are_encoded_by_the_server(export_dir, index_dir, search, server):
    remote = open_search(export_dir, index_dir, the_same, server="localhost:8500")
    queries = [QUERY, "word8"]
    for theirs, ours in zip(remote.search(queries, 5), search.search(queries, 5)):
        expected = [dataclasses.asdict(hit) for hit in ours]
        scores = [hit.pop("score") for hit in expected]
        found = [dataclasses.asdict(hit) for hit in theirs]
        assert [hit.pop("score") for hit in found] == pytest.approx(scores, abs=1e-6)
        assert found == expected
    assert server.asked == [QUERY, "word8"]


@pytest.fixture(scope="module", params=[grpc_server, local_server], ids=["grpc", "rest"])
def address(request, export_dir):
    with request.param(export_dir) as address:
        yield address


def test_command_finds_by_a_running_server_what_it_finds_alone(
    address, export_dir, index_dir, search
):
    command = [sys.executable, "-m", "export.search", f"--server={address}"]
    command += [f"--export_dir={export_dir}", f"--index_dir={index_dir}", "--json", "--top_k=5"]
    lines = f"{QUERY}\n\nunheard ÄÖ\n"
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    queries = [QUERY, "", "unheard ÄÖ"]
    assert [answer["query"] for answer in answers] == queries
    for answer, results in zip(answers, search.search(queries, 5)):
        expected = [dataclasses.asdict(result) for result in results]
        scores = [result.pop("score") for result in answer["results"]]
        assert scores == pytest.approx([result.pop("score") for result in expected], abs=1e-6)
        assert answer["results"] == expected


def test_running_server_of_another_run_is_refused(index_dir, export_dir, export):
    with (
        local_server(export) as address,
        pytest.raises(InputError, match=rf"query tower of {address}.*different training"),
    ):
        open_search(export_dir, index_dir, the_same, server=address)


def test_server_of_another_run_is_refused(export_dir, index_dir, server):
    server.pair = "f" * 64
    with pytest.raises(InputError, match=r"query tower of localhost:8500.*different training runs"):
        open_search(export_dir, index_dir, the_same, server="localhost:8500")


def test_vectors_of_another_length_are_refused(export_dir, index_dir, server):
    server.extra = 1
    remote = open_search(export_dir, index_dir, the_same, server="localhost:8500")
    with pytest.raises(InputError, match="they have 5 numbers, those of the index 4"):
        remote.search([QUERY], 5)
