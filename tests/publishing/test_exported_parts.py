"""Exported towers and re-rankers: fixed signatures, any bytes, one run; a C program loads them."""

import dataclasses
import os
import shutil
import struct
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from tests import graphs, published
from tests.cases import cases
from tests.search.test_word_search import check_ranks, ranked_by_evaluation
from tests.server.local_server import local_server
from tf_smoothclir import AveragePoolingTower, InputError, ServingClient, smooth_normalize
from tf_smoothclir.families import reranked as reranked_family
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.publishing import export, export_directory, exported_models, request_bounds
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.request_bounds import MAX_ANSWER, MAX_TOKENS
from tf_smoothclir.search import opening, second_stage
from tf_smoothclir.settings.retrieval import RERANKED
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.subwords import SubwordTextEncoder
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary
from tf_smoothclir.training.run_models import RunModels, load_models

TEXTS = [b"Red  APPLE!", b"", b"sea what?", *published.HOSTILE[:100]]
ASKED = ["wordb worde", "", "nobody knows", "wordc wordc wordd wordf wordh"]
DOCUMENTS = [b"motb mote motc", b"", b"\xff\x00 motc", b"motd motc motf " * 60]
QUERIES_IN_C = [
    b"wordb wordc",
    b"",
    b"\xff\xfe",
    b"a\0wordd",
    b"WORDE " * 300,
    "日本 wordf".encode(),
]
DOCUMENTS_IN_C = [b"motb motc", b"motd", b"", b"\0", b"mote " * 300, b"unheard"]
# Retriever of the export, role.
REQUESTS = [("dense", "query"), ("dense", "document")]
REQUESTS += [(name, "search") for name in ("dense", "lexical", "hybrid")]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A query tower, and the same one saved, moved, and loaded where its vocabulary is gone."""
    path = tmp_path_factory.mktemp("tower")
    tower = published.small_tower(path, "query")
    tower.save(str(path / "saved"))
    (path / "query.txt").unlink()
    model = tf.saved_model.load(str((path / "saved").rename(path / "moved")))
    assert published.undesired_operations(model) == set()
    return tower, model


def by_hand(tower, rows):
    """The mean of the rows of the table, tanh, then x / (‖x‖ + ε)."""
    vector = np.tanh(tower.weights[0].numpy()[rows].mean(axis=0))
    return vector / (np.linalg.norm(vector) + published.EPSILON)


def test_signatures_are_frozen(loaded):
    text, ints = (tf.string, [None]), (tf.int32, [None])
    vector = {"vector": (tf.float32, [None, published.DIM])}
    assert published.described(loaded[1]) == {
        "serving_default": ({"text": text}, vector),
        "tokens": ({"ids": ints, "lengths": ints}, vector),
        "pair_id": ({"text": text}, {"pair_id": text}),
        "evidence": ({"text": text}, {**vector, "evidence": text, "unknown": text}),
    }


def test_vectors_by_hand(loaded):
    tower, model = loaded
    texts = ["Red APPLE", "sea", "what sea", "red " * 5 + "apple", "", "?!"]
    found = published.encode(model.signatures["serving_default"], texts)
    # Ids: padding 0, unknown 1, red 2, apple 3, sea 4; texts are cut at five tokens.
    expected = [by_hand(tower, rows) for rows in ([2, 3], [4], [1, 4], [2])]
    expected += [np.zeros(published.DIM), by_hand(tower, [1, 1])]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_hostile_rows_are_finite_and_do_not_affect_others(loaded):
    signature = loaded[1].signatures["serving_default"]
    known = published.encode(signature, [b"red apple", b"sea"])
    for rows in (*([row] for row in published.HOSTILE[:50]), published.HOSTILE):
        first, *hostile, last = published.encode(signature, [b"red apple", *rows, b"sea"])
        assert len(hostile) == len(rows)
        assert np.isfinite(hostile).all()
        assert np.linalg.norm(hostile, axis=1).max() < 1
        np.testing.assert_array_equal([first, last], known)


def tokens(model, ids, lengths):
    given = {"ids": tf.constant(ids, tf.int32), "lengths": tf.constant(lengths, tf.int32)}
    return model.signatures["tokens"](**given)["vector"]


def test_tokens_give_the_vectors_of_their_texts_and_other_ids_count_as_unknown(loaded):
    tower, model = loaded
    texts = published.encode(model.signatures["serving_default"], ["red apple", "", "sea"])
    np.testing.assert_array_equal(tokens(model, [2, 3, 4], [2, 0, 1]), texts)
    outside = [-1, 5, 1_000_000, -(2**31), 2**31 - 1]
    expected = [by_hand(tower, [row]) for row in [1] * 5 + [2]]
    np.testing.assert_allclose(tokens(model, [*outside, 2], [1] * 6), expected, rtol=1e-5)


def test_empty_batch_gives_no_vectors(loaded):
    model = loaded[1]
    assert published.encode(model.signatures["serving_default"], []).shape == (0, published.DIM)
    assert tokens(model, [], []).shape == (0, published.DIM)
    words = model.words(tf.constant([], tf.string))
    assert words["vectors"].shape == (0, published.DIM)
    assert words["words"].shape == words["lengths"].shape == (0,)


@cases("lengths", [1], [3, -1], [2**31 - 1, 2**31 - 1], [])
def test_lengths_that_do_not_fit_the_ids_are_an_error(loaded, lengths):
    with pytest.raises(tf.errors.InvalidArgumentError, match="add up to the number of ids"):
        tokens(loaded[1], [2, 3], lengths)


@cases(
    "signature, given",
    ("serving_default", {"text": [b""] * ((MAX_ANSWER >> 4) + 1)}),
    ("pair_id", {"text": [b""] * ((MAX_ANSWER >> 4) + 1)}),
    ("evidence", {"text": [b""] * ((MAX_ANSWER >> 4) + 1)}),
    ("tokens", {"ids": [], "lengths": [0] * ((MAX_ANSWER >> 4) + 1)}),
    ("tokens", {"ids": [2] * (MAX_TOKENS + 1), "lengths": [MAX_TOKENS + 1]}),
    ("tokens", {"ids": [2] * 300, "lengths": [0] * 262_000 + [300]}),
)
def test_the_graph_bounds_what_a_request_makes_it_compute(loaded, signature, given):
    """So TensorFlow Serving is protected too: 60 kB of empty texts took 2.7 GB."""
    function = loaded[1].signatures[signature]
    specs = function.structured_input_signature[1]
    tensors = {name: tf.constant(given[name], spec.dtype) for name, spec in specs.items()}
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"a request may have \d+ (rows|ids)"):
        function(**tensors)


def test_pieces_of_a_request_give_what_the_whole_would(towers, tmp_path, monkeypatch):
    monkeypatch.setattr(request_bounds, "_BYTES_AT_ONCE", 20)
    published.small_tower(tmp_path, "query").save(str(tmp_path / "saved"))
    model = tf.saved_model.load(str(tmp_path / "saved"))
    for texts in (TEXTS, TEXTS[:1], []):
        for name, whole in towers["query"].signatures.items():
            if name not in ("tokens", "pair_id"):
                found = model.signatures[name](text=tf.constant(texts, tf.string))
                for key, values in whole(tf.constant(texts, tf.string)).items():
                    np.testing.assert_array_equal(found[key], values)
    sizes = []

    def lengths(one, text):
        tf.py_function(lambda some: sizes.append(some.numpy().tolist()), [text], [])
        return {"length": tf.strings.length(text) + tf.strings.length(one)}

    texts = tf.constant([b"a" * size for size in (9, 9, 9, 30, 1, 1, 1)])
    found = request_bounds.in_pieces(lengths, tf.constant([b"bb"]), texts, at_once=2)
    assert found["length"].numpy().tolist() == [11, 11, 11, 32, 3, 3, 3]
    assert [len(some) for some in sizes] == [2, 1, 1, 2, 1]


def test_words_explain_the_vector_of_a_text(loaded):
    tower, model = loaded
    found = model.words(tf.constant(TEXTS))
    ends = np.cumsum(found["lengths"])
    vectors = np.split(found["vectors"].numpy(), ends[:-1])
    of_texts = published.encode(model.signatures["serving_default"], TEXTS)
    for vector, word_vectors in zip(of_texts, vectors):
        raw = np.tanh(word_vectors.mean(axis=0)) if len(word_vectors) else np.zeros(published.DIM)
        expected = raw / (np.linalg.norm(raw) + published.EPSILON)
        np.testing.assert_allclose(vector, expected, atol=1e-6)
    expected = [[b"red", b"apple", b"!"], [], [b"sea", b"what", b"?"]]
    assert [part.tolist() for part in np.split(found["words"].numpy(), ends[:-1])[:3]] == expected
    np.testing.assert_array_equal(vectors[0], tower.weights[0].numpy()[[2, 3, 1]])
    assert max(found["lengths"].numpy()) == tower.encoder.max_tokens


@cases("kind", "cnn", "lstm")
def test_towers_that_read_word_order_are_served_without_words(kind, towers, tmp_path):
    tower = TOWERS[kind](2 + len(published.WORDS["query"]), published.DIM)
    tower.build()
    encoder = towers["query"].encoder
    serving = ExportedTower(tower, encoder, epsilon=published.EPSILON, name="query_tower")
    serving.save(str(tmp_path))
    model = tf.saved_model.load(str(tmp_path))
    assert not hasattr(model, "words")
    assert not hasattr(serving, "words")
    found = published.encode(model.signatures["serving_default"], TEXTS)
    np.testing.assert_allclose(found, serving.serve(tf.constant(TEXTS))["vector"], atol=1e-6)
    assert np.abs(found).max() > 0.01
    assert published.undesired_operations(model) == set()


@cases("options", {"ngram_buckets": 40}, {"position_weights": "learned"})
def test_no_function_reads_single_rows_of_tables(options, tmp_path):
    # After one that does, TensorFlow copies the whole table for each call of the others.
    tower = AveragePoolingTower(len(published.WORDS["query"]) + 2, published.DIM, **options)
    tower.build()
    write_vocabulary(tmp_path / "query.txt", [PADDING, UNKNOWN, *published.WORDS["query"]])
    encoder = TextEncoder(tmp_path / "query.txt", 10)
    if tower.ngram_buckets:
        encoder = SubwordTextEncoder(tmp_path / "query.txt", 10, TextSettings(ngram_buckets=40))
    exported = ExportedTower(tower, encoder, epsilon=published.EPSILON, name="query_tower")
    exported.save(str(tmp_path / "saved"))
    model = tf.saved_model.load(str(tmp_path / "saved"))
    functions = [*model.signatures.values(), model.words]
    assert not any("ResourceGather" in graphs.operations_in(each.graph) for each in functions)
    vectors = model.signatures["serving_default"](text=tf.constant(TEXTS))["vector"]
    expected = smooth_normalize(tower(encoder(tf.constant(TEXTS))), published.EPSILON)
    np.testing.assert_allclose(vectors, expected, rtol=1e-6, atol=1e-7)


def opened(export_dir, **options):
    return opening.open_search(export_dir, "", lambda data: data, **options)


@pytest.fixture(scope="module")
def search(reranked):
    return opened(reranked[1])


def padded(texts, encoder):
    tokens = encoder(tf.constant(texts))
    rows = np.split(tokens.ids.numpy(), np.cumsum(tokens.lengths.numpy())[:-1])
    longest = max(1, *map(len, rows))
    return np.array([[*row, *[0] * (longest - len(row))] for row in rows], np.int32)


def test_the_saved_model_scores_as_python_does(reranked):
    run, export_dir = reranked
    model, manifest = export_directory.load_part(export_dir, "reranker")
    assert published.undesired_operations(model) == set()
    stage = exported_models.load_exported_models(export_dir)["reranked"]
    documents = padded(DOCUMENTS, stage.encoders["document"])
    serve = model.signatures["serving_default"]
    for text in ASKED:
        (query,) = padded([text], stage.encoders["query"])
        expected = stage.reranker.network.list_scorer()(query, documents)
        for queries in ([text], [text] * len(DOCUMENTS)):
            found = serve(query=tf.constant(queries), document=tf.constant(DOCUMENTS))["score"]
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    with pytest.raises(tf.errors.InvalidArgumentError, match="query must have one row"):
        serve(query=tf.constant(["a", "b"]), document=tf.constant(DOCUMENTS[:3]))
    assert manifest.parts == ("lexical", "reranker")
    assert manifest.pair_id == export.models_of_run(run).manifest.pair_id
    said = model.signatures["pair_id"](text=tf.constant([""]))
    assert said["pair_id"].numpy()[0].decode() == manifest.pair_id
    assert said["weight"].numpy() == [30.0]


def test_a_model_server_re_ranks(reranked):
    model, _ = export_directory.load_part(reranked[1], "reranker")
    serve = model.signatures["serving_default"]
    expected = serve(query=tf.constant(ASKED[:1]), document=tf.constant(DOCUMENTS))["score"]
    with local_server(reranked[1]) as address:
        client = ServingClient(address, batch_size=3)
        found = client.rerank(ASKED[0], DOCUMENTS)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
        assert client.rerank(ASKED[0], []).shape == (0,)


def test_searches_rank_as_the_run_does(reranked, search):
    texts, ids, scores = ranked_by_evaluation(reranked[0], RERANKED)
    check_ranks(search, texts, ids, scores)
    assert ids != ranked_by_evaluation(reranked[0], "lexical")[1]
    found = search.search(texts, published.RERANKED_DEPTH + 2)
    assert max(map(len, found)) > published.RERANKED_DEPTH
    assert {hit.grade for hits in found for hit in hits} <= {0, 1, 2}


def test_explanations_name_pairs_of_words_that_add_up(search):
    assert search.search(["???", ""], 5) == [[], []]
    assert search.collection.retrievers == (RERANKED, "lexical")
    (hits,) = search.search(["wordb worde"], 3)
    for hit, explanation in zip(hits, search.explain("wordb worde", hits), strict=True):
        assert explanation.score == hit.score
        assert {pair.query_word for pair in explanation.pairs} <= {"wordb", "worde"}
        assert all(pair.document_word in hit.text for pair in explanation.pairs)
        added = sum(pair.share for pair in explanation.pairs)
        assert added == pytest.approx(explanation.reranker, rel=1e-3)
        parts = sum(word.share for word in explanation.words) + explanation.remainder
        others = explanation.towers + explanation.feedback + explanation.reranker
        assert parts + others == pytest.approx(hit.score, rel=1e-5)


def test_a_re_ranker_that_is_not_there_is_missed(reranked, search, monkeypatch):
    """Whoever copied the export may have left it out."""

    def versions(path, role):
        return [] if role == "reranker" else export_directory.exported_versions(path, role)

    monkeypatch.setattr(reranked_family, "exported_versions", versions)
    for retriever in ("auto", RERANKED):
        with pytest.raises(InputError, match=r"reranker/1: the index is of an export with a re-"):
            opened(reranked[1], retriever=retriever)
    assert opened(reranked[1], retriever="lexical").collection.retrievers == ("lexical",)


def test_exported_re_rankers_read_no_more_of_a_text_than_the_run(reranked, monkeypatch):
    models = load_models(reranked[0])
    text = dataclasses.replace(models.settings.text, max_query_tokens=2, max_document_tokens=3)
    short = RunModels(dataclasses.replace(models.settings, text=text), models)
    monkeypatch.setattr(export, "load_models", lambda _: short)
    stage = export.models_of_run(reranked[0])["reranked"]
    assert [stage.encoders[role].max_tokens for role in ("query", "document")] == [2, 3]


def test_searches_forget_the_words_of_the_first_documents(search, monkeypatch):
    expected = search.search(["wordb worde"], 3)
    search.ranker._known.clear()
    monkeypatch.setattr(second_stage, "_REMEMBERED", 2)
    assert search.search(["wordb worde"], 3) == expected
    assert len(search.ranker._known) == 2


@pytest.fixture(scope="module")
def c_loader(tmp_path_factory):
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler (cc) on the PATH: the C loader is not tested")
    program = tmp_path_factory.mktemp("c") / "c_loader"
    wheel = tf.sysconfig.get_lib()
    libraries = ["-l:libtensorflow_cc.so.2", "-l:libtensorflow_framework.so.2"]
    if not Path(wheel, "libtensorflow_cc.so.2").is_file():
        pytest.skip(f"this TensorFlow has no C library in {wheel}: the C loader is not tested")
    source = str(Path(__file__).with_name("c_loader.c"))
    command = [compiler, "-std=c11", "-Wall", "-Wextra", f"-I{tf.sysconfig.get_include()}", source]
    command += ["-o", str(program), f"-L{wheel}", f"-Wl,-rpath,{wheel}", *libraries]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "c_loader.c" not in done.stderr  # no warnings
    return program


def run_in_c(c_loader, model_dir, rows_file, rows):
    """Runs a model in the C program; returns the finished process and the output names."""
    saved = saved_model_pb2.SavedModel.FromString((model_dir / "saved_model.pb").read_bytes())
    definition = saved.meta_graphs[0].signature_def["serving_default"]
    with open(rows_file, "wb") as file:
        file.write(struct.pack("=I", len(rows)))
        file.writelines(struct.pack("=I", len(row)) + row for row in rows)
    outputs = sorted(definition.outputs)
    tensors = [definition.inputs["text"].name]
    tensors += [definition.outputs[name].name for name in outputs]
    command = [c_loader, model_dir, rows_file, "1", *tensors]
    quiet = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
    return subprocess.run(command, env=quiet, capture_output=True, text=True), outputs


def parsed(line):
    """The array that the program has printed as a line."""
    kind, rank, *rest = line.split()
    shape, values = [int(size) for size in rest[: int(rank)]], rest[int(rank) :]
    if kind == "string":
        values = [b"" if value == "-" else bytes.fromhex(value) for value in values]
        return np.array(values, object).reshape(shape)
    return np.array(values, kind if kind == "int32" else np.float32).reshape(shape)


@pytest.mark.slow
@cases("name, role", *REQUESTS)
def test_c_program_gives_what_python_gives(c_loader, ranking_exports, tmp_path, name, role):
    texts = DOCUMENTS_IN_C if role == "document" else QUERIES_IN_C
    directory = export_directory.part_dir(ranking_exports[name], role) / "1"
    done, names = run_in_c(c_loader, directory, tmp_path / "rows", texts)
    assert done.returncode == 0, done.stderr
    found = dict(zip(names, map(parsed, done.stdout.splitlines())))
    model = tf.saved_model.load(str(directory))
    expected = model.signatures["serving_default"](text=tf.constant(texts))
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert found[name].shape == value.shape
        if value.dtype.is_floating:
            assert np.abs(value).max() > 0.01
            np.testing.assert_allclose(found[name], value, rtol=1e-6, atol=1e-6)
        else:
            np.testing.assert_array_equal(found[name], value.numpy())
