"""The exported graph: fixed signatures, any bytes as input, core operations only."""

import numpy as np
import pytest
import tensorflow as tf

from tests.published import DIM, EPSILON, WORDS, encode, undesired_operations
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.text.word_encoder import TextEncoder
from tf_smoothclir.towers.average_pooling import AveragePoolingTower

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
        "pair_id": ({"text": (tf.string, [None])}, {"pair_id": (tf.string, [None])}),
        "evidence": (
            {"text": (tf.string, [None])},
            {**vector, "evidence": (tf.string, [None]), "unknown": (tf.string, [None])},
        ),
    }


def test_evidence_is_a_known_word_and_never_punctuation(loaded):
    found = loaded[1].signatures["evidence"](
        text=tf.constant(["Red ZEBRA on", "zebra", "", "?!", "red"])
    )
    assert found["evidence"].numpy().tolist() == [b"words", *[b"nothing"] * 3, b"words"]
    assert found["unknown"].numpy().tolist() == [b"zebra on", b"zebra", b"", b"", b""]


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
def test_hostile_row_is_finite_and_does_not_affect_others(loaded, row):
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


@pytest.mark.parametrize("lengths", [[1], [1, 1, 1], [3, -1], [-1, 3], [2**31 - 1, 2**31 - 1], []])
def test_lengths_that_do_not_fit_the_ids_are_an_error(loaded, lengths):
    signature = loaded[1].signatures["tokens"]
    with pytest.raises(tf.errors.InvalidArgumentError, match="add up to the number of ids"):
        signature(ids=tf.constant([2, 3]), lengths=tf.constant(lengths, tf.int32))


@pytest.mark.parametrize(
    "inputs",
    [
        {"text": tf.constant("a scalar")},
        {"text": tf.constant([["of", "rank"], ["two", ""]])},
        {"text": tf.constant([1, 2])},
    ],
)
def test_wrong_type_or_rank_is_an_error(loaded, inputs):
    with pytest.raises((TypeError, ValueError, tf.errors.InvalidArgumentError)):
        loaded[1].signatures["serving_default"](**inputs)


TEXTS = [b"Red  APPLE!", b"", b"sea what?", *HOSTILE.values()]


def test_words_explain_the_vector_of_a_text(loaded):
    tower, model = loaded
    found = model.words(tf.constant(TEXTS))
    assert {key: (value.dtype, value.shape.rank) for key, value in found.items()} == {
        "words": (tf.string, 1),
        "lengths": (tf.int32, 1),
        "vectors": (tf.float32, 2),
    }
    ends = np.cumsum(found["lengths"])
    vectors = np.split(found["vectors"].numpy(), ends[:-1])
    for vector, word_vectors in zip(encode(model.signatures["serving_default"], TEXTS), vectors):
        raw = np.tanh(word_vectors.mean(axis=0)) if len(word_vectors) else np.zeros(DIM)
        np.testing.assert_allclose(vector, raw / (np.linalg.norm(raw) + EPSILON), atol=1e-6)
    words = np.split(found["words"].numpy(), ends[:-1])
    assert [part.tolist() for part in words[:3]] == [
        [b"red", b"apple", b"!"],
        [],
        [b"sea", b"what", b"?"],
    ]
    table = tower.weights[0].numpy()
    np.testing.assert_array_equal(vectors[0], table[[2, 3, 1]])
    assert max(found["lengths"].numpy()) == tower.encoder.max_tokens


def test_words_of_no_text_are_none(loaded):
    found = loaded[1].words(tf.constant([], tf.string))
    assert found["vectors"].shape == (0, DIM)
    assert found["words"].shape == found["lengths"].shape == (0,)


@pytest.fixture(scope="module", params=["cnn", "lstm"])
def reading_tower(request, make_tower, tmp_path_factory):
    """A tower that reads word order, and the same one saved and loaded."""
    vocabulary_size, encoder = 2 + len(WORDS["query"]), make_tower("query").encoder
    tower = TOWERS[request.param](vocabulary_size, DIM)
    tower.build()
    serving = ExportedTower(tower, encoder, epsilon=EPSILON, name="query_tower")
    path = tmp_path_factory.mktemp(request.param)
    serving.save(str(path))
    return serving, tf.saved_model.load(str(path))


def test_towers_that_read_word_order_are_served_without_words(reading_tower):
    tower, model = reading_tower
    assert not hasattr(model, "words")
    assert not hasattr(tower, "words")
    expected = tower.serve(tf.constant(TEXTS))["vector"]
    found = encode(model.signatures["serving_default"], TEXTS)
    np.testing.assert_allclose(found, expected, atol=1e-6)
    assert np.isfinite(found).all()
    assert np.abs(found).max() > 0.01
    assert undesired_operations(model) == set()


def test_graph_has_operations_of_core_tensorflow_only(loaded):
    assert undesired_operations(loaded[1]) == set()


def test_operation_that_needs_python_is_found():
    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def inner(text):
        return {"text": tf.py_function(lambda x: x, [text], tf.string)}

    module = tf.Module()
    module.signatures = {"serving_default": inner.get_concrete_function()}
    assert undesired_operations(module) == {"EagerPyFunc"}


def test_size_is_that_of_the_table_and_the_vocabulary(tmp_path):
    size, dim = 20_000, 64
    write_vocabulary(tmp_path / "v.txt", ["[PAD]", "[UNK]", *(f"w{n}" for n in range(size - 2))])
    tower = AveragePoolingTower(size, dim)
    tower.build()
    encoder = TextEncoder(tmp_path / "v.txt", max_tokens=5)
    ExportedTower(tower, encoder, epsilon=EPSILON, name="query_tower").save(str(tmp_path / "1"))
    written = sum(path.stat().st_size for path in (tmp_path / "1").rglob("*") if path.is_file())
    assert written <= 1.05 * size * dim * 4 + (tmp_path / "v.txt").stat().st_size
