"""The exported graph: its signatures, total on any bytes, in core operations only."""

import numpy as np
import pytest
import tensorflow as tf

from tests.serving.conftest import DIM, EPSILON, encode

HOSTILE = {
    "empty": b"",
    "blank": " \t\n\u00a0\u3000".encode(),
    "not UTF-8": b"\xff\xfe red \xc3",
    "NUL": b"red\0apple",
    "a megabyte": b"red apple " * 100_000,
    "a megabyte in one word": b"x" * 1_000_000,
    "mixed scripts": "red яблоко 日本 แอปเปิ้ล سیب 🍎".encode(),
    "only marks": "\u0301\u0301\u200b\u200d".encode(),
    "a surrogate half": b"\xed\xa0\x80",
}


@pytest.fixture(scope="module")
def loaded(make_tower, tmp_path_factory):
    """The query tower and the same one saved and loaded."""
    tower, path = make_tower("query"), tmp_path_factory.mktemp("tower")
    tower.save(str(path))
    return tower, tf.saved_model.load(str(path))


def by_hand(tower, rows):
    """The mean of the rows of the table, tanh, then x / (‖x‖ + ε)."""
    vector = np.tanh(tower.weights[0].numpy()[rows].mean(axis=0))
    return vector / (np.linalg.norm(vector) + EPSILON)


def test_signatures_are_frozen(loaded):
    signatures = loaded[1].signatures
    found = {
        name: (
            {key: (spec.dtype, spec.shape.as_list()) for key, spec in inputs.items()},
            {key: (spec.dtype, spec.shape.as_list()) for key, spec in outputs.items()},
        )
        for name in signatures
        for inputs in [signatures[name].structured_input_signature[1]]
        for outputs in [signatures[name].structured_outputs]
    }
    vector = {"vector": (tf.float32, [None, DIM])}
    assert found == {
        "serving_default": ({"text": (tf.string, [None])}, vector),
        "tokens": ({"ids": (tf.int32, [None]), "lengths": (tf.int32, [None])}, vector),
    }


def test_vectors_by_hand(loaded):
    tower, model = loaded
    found = encode(model.signatures["serving_default"], ["Red APPLE", "sea", "what sea", "", "?!"])
    # Ids: padding 0, unknown 1, red 2, apple 3, sea 4.
    expected = [by_hand(tower, rows) for rows in ([2, 3], [4], [1, 4])]
    expected += [np.zeros(DIM), by_hand(tower, [1, 1])]
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-7)


def test_text_is_cut_at_max_tokens(loaded):
    signature = loaded[1].signatures["serving_default"]
    cut, whole = encode(signature, ["red " * 5 + "apple", "red " * 5])
    np.testing.assert_array_equal(cut, whole)


@pytest.mark.parametrize("row", HOSTILE.values(), ids=HOSTILE)
def test_hostile_row_is_finite_and_leaves_its_neighbours_alone(loaded, row):
    signature = loaded[1].signatures["serving_default"]
    first, hostile, last = encode(signature, [b"red apple", row, b"sea"])
    assert np.isfinite(hostile).all()
    assert np.linalg.norm(hostile) < 1
    np.testing.assert_array_equal([first, last], encode(signature, [b"red apple", b"sea"]))


def test_all_hostile_rows_in_one_batch(loaded):
    vectors = encode(loaded[1].signatures["serving_default"], list(HOSTILE.values()))
    assert vectors.shape == (len(HOSTILE), DIM)
    assert np.isfinite(vectors).all()


def test_tokens_give_the_vectors_of_their_texts(loaded):
    tower, model = loaded
    tokens = model.signatures["tokens"](ids=tf.constant([2, 3, 4]), lengths=tf.constant([2, 0, 1]))[
        "vector"
    ]
    texts = encode(model.signatures["serving_default"], ["red apple", "", "sea"])
    np.testing.assert_array_equal(tokens, texts)
    np.testing.assert_allclose(tokens[0], by_hand(tower, [2, 3]), rtol=1e-5)


@pytest.mark.parametrize("outside", [-1, 5, 1_000_000, -(2**31), 2**31 - 1])
def test_ids_out_of_range_count_as_unknown(loaded, outside):
    signature = loaded[1].signatures["tokens"]
    found = signature(ids=tf.constant([outside, 2]), lengths=tf.constant([1, 1]))["vector"]
    np.testing.assert_allclose(found[0], by_hand(loaded[0], [1]), rtol=1e-5)
    np.testing.assert_allclose(found[1], by_hand(loaded[0], [2]), rtol=1e-5)


def test_empty_batch_gives_no_vectors(loaded):
    signatures = loaded[1].signatures
    nothing = tf.constant([], tf.int32)
    assert encode(signatures["serving_default"], []).shape == (0, DIM)
    assert signatures["tokens"](ids=nothing, lengths=nothing)["vector"].shape == (0, DIM)
