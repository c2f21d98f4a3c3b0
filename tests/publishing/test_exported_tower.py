"""The exported graph: fixed signatures, any bytes as input, core operations only."""

import numpy as np
import pytest
import tensorflow as tf

from tests import published
from tests.graphs import operations_in
from tests.published import DIM, EPSILON, HOSTILE, WORDS, encode, small_tower
from tf_smoothclir import AveragePoolingTower, smooth_normalize
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.publishing import request_bounds
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.request_bounds import MAX_ANSWER, MAX_TOKENS
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.subwords import SubwordTextEncoder
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import PADDING, UNKNOWN, write_vocabulary

TEXTS = [b"Red  APPLE!", b"", b"sea what?", *HOSTILE[:100]]


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A query tower, and the same one saved, moved, and loaded where its vocabulary is gone."""
    path = tmp_path_factory.mktemp("tower")
    tower = small_tower(path, "query")
    tower.save(str(path / "saved"))
    (path / "query.txt").unlink()
    model = tf.saved_model.load(str((path / "saved").rename(path / "moved")))
    assert published.undesired_operations(model) == set()
    return tower, model


def by_hand(tower, rows):
    """The mean of the rows of the table, tanh, then x / (‖x‖ + ε)."""
    vector = np.tanh(tower.weights[0].numpy()[rows].mean(axis=0))
    return vector / (np.linalg.norm(vector) + EPSILON)


def test_signatures_are_frozen(loaded):
    text, ints = (tf.string, [None]), (tf.int32, [None])
    vector = {"vector": (tf.float32, [None, DIM])}
    assert published.described(loaded[1]) == {
        "serving_default": ({"text": text}, vector),
        "tokens": ({"ids": ints, "lengths": ints}, vector),
        "pair_id": ({"text": text}, {"pair_id": text}),
        "evidence": ({"text": text}, {**vector, "evidence": text, "unknown": text}),
    }


def test_vectors_by_hand(loaded):
    tower, model = loaded
    texts = ["Red APPLE", "sea", "what sea", "red " * 5 + "apple", "", "?!"]
    found = encode(model.signatures["serving_default"], texts)
    # Ids: padding 0, unknown 1, red 2, apple 3, sea 4; texts are cut at five tokens.
    expected = [by_hand(tower, rows) for rows in ([2, 3], [4], [1, 4], [2])]
    expected += [np.zeros(DIM), by_hand(tower, [1, 1])]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_hostile_rows_are_finite_and_do_not_affect_others(loaded):
    signature = loaded[1].signatures["serving_default"]
    known = encode(signature, [b"red apple", b"sea"])
    for rows in (*([row] for row in HOSTILE[:50]), HOSTILE):
        first, *hostile, last = encode(signature, [b"red apple", *rows, b"sea"])
        assert len(hostile) == len(rows)
        assert np.isfinite(hostile).all()
        assert np.linalg.norm(hostile, axis=1).max() < 1
        np.testing.assert_array_equal([first, last], known)


def tokens(model, ids, lengths):
    given = {"ids": tf.constant(ids, tf.int32), "lengths": tf.constant(lengths, tf.int32)}
    return model.signatures["tokens"](**given)["vector"]


def test_tokens_give_the_vectors_of_their_texts_and_other_ids_count_as_unknown(loaded):
    tower, model = loaded
    texts = encode(model.signatures["serving_default"], ["red apple", "", "sea"])
    np.testing.assert_array_equal(tokens(model, [2, 3, 4], [2, 0, 1]), texts)
    outside = [-1, 5, 1_000_000, -(2**31), 2**31 - 1]
    expected = [by_hand(tower, [row]) for row in [1] * 5 + [2]]
    np.testing.assert_allclose(tokens(model, [*outside, 2], [1] * 6), expected, rtol=1e-5)


def test_empty_batch_gives_no_vectors(loaded):
    model = loaded[1]
    assert encode(model.signatures["serving_default"], []).shape == (0, DIM)
    assert tokens(model, [], []).shape == (0, DIM)
    words = model.words(tf.constant([], tf.string))
    assert words["vectors"].shape == (0, DIM)
    assert words["words"].shape == words["lengths"].shape == (0,)


@pytest.mark.parametrize("lengths", [[1], [3, -1], [2**31 - 1, 2**31 - 1], []])
def test_lengths_that_do_not_fit_the_ids_are_an_error(loaded, lengths):
    with pytest.raises(tf.errors.InvalidArgumentError, match="add up to the number of ids"):
        tokens(loaded[1], [2, 3], lengths)


@pytest.mark.parametrize(
    ("signature", "given"),
    [
        ("serving_default", {"text": [b""] * ((MAX_ANSWER >> 4) + 1)}),
        ("pair_id", {"text": [b""] * ((MAX_ANSWER >> 4) + 1)}),
        ("evidence", {"text": [b""] * ((MAX_ANSWER >> 4) + 1)}),
        ("tokens", {"ids": [], "lengths": [0] * ((MAX_ANSWER >> 4) + 1)}),
        ("tokens", {"ids": [2] * (MAX_TOKENS + 1), "lengths": [MAX_TOKENS + 1]}),
        ("tokens", {"ids": [2] * 300, "lengths": [0] * 262_000 + [300]}),
    ],
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
    small = small_tower(tmp_path, "query")
    small.save(str(tmp_path / "saved"))
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
    for vector, word_vectors in zip(encode(model.signatures["serving_default"], TEXTS), vectors):
        raw = np.tanh(word_vectors.mean(axis=0)) if len(word_vectors) else np.zeros(DIM)
        np.testing.assert_allclose(vector, raw / (np.linalg.norm(raw) + EPSILON), atol=1e-6)
    words = np.split(found["words"].numpy(), ends[:-1])
    expected = [[b"red", b"apple", b"!"], [], [b"sea", b"what", b"?"]]
    assert [part.tolist() for part in words[:3]] == expected
    np.testing.assert_array_equal(vectors[0], tower.weights[0].numpy()[[2, 3, 1]])
    assert max(found["lengths"].numpy()) == tower.encoder.max_tokens


@pytest.mark.parametrize("kind", ["cnn", "lstm"])
def test_towers_that_read_word_order_are_served_without_words(kind, towers, tmp_path):
    tower = TOWERS[kind](2 + len(WORDS["query"]), DIM)
    tower.build()
    serving = ExportedTower(tower, towers["query"].encoder, epsilon=EPSILON, name="query_tower")
    serving.save(str(tmp_path))
    model = tf.saved_model.load(str(tmp_path))
    assert not hasattr(model, "words")
    assert not hasattr(serving, "words")
    found = encode(model.signatures["serving_default"], TEXTS)
    np.testing.assert_allclose(found, serving.serve(tf.constant(TEXTS))["vector"], atol=1e-6)
    assert np.abs(found).max() > 0.01
    assert published.undesired_operations(model) == set()


@pytest.mark.parametrize("options", [{"ngram_buckets": 40}, {"position_weights": "learned"}])
def test_no_function_reads_single_rows_of_tables(options, tmp_path):
    # After one that does, TensorFlow copies the whole table for each call of the others.
    tower = AveragePoolingTower(len(WORDS["query"]) + 2, DIM, **options)
    tower.build()
    write_vocabulary(tmp_path / "query.txt", [PADDING, UNKNOWN, *WORDS["query"]])
    encoder = TextEncoder(tmp_path / "query.txt", 10)
    if tower.ngram_buckets:
        settings = TextSettings(ngram_buckets=40)
        encoder = SubwordTextEncoder(tmp_path / "query.txt", 10, settings)
    exported = ExportedTower(tower, encoder, epsilon=EPSILON, name="query_tower")
    exported.save(str(tmp_path / "saved"))
    model = tf.saved_model.load(str(tmp_path / "saved"))
    functions = [*model.signatures.values(), *model.words.concrete_functions]
    assert not any("ResourceGather" in operations_in(each.graph) for each in functions)
    vectors = model.signatures["serving_default"](text=tf.constant(TEXTS))["vector"]
    expected = smooth_normalize(tower(encoder(tf.constant(TEXTS))), EPSILON)
    np.testing.assert_allclose(vectors, expected, rtol=1e-6, atol=1e-7)
