"""Exact top-k: against NumPy, across chunks, with ties, eagerly and in a graph."""

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.ops import top_k as module
from tf_smoothclir.ops.top_k import in_chunks, top_k


def eager(queries, documents, depth):
    return top_k(queries, in_chunks(documents), depth)


def in_graph(queries, documents, depth):
    """With the documents in a variable and any number of queries, as in a SavedModel."""
    variable = tf.Variable(documents)
    signature = [tf.TensorSpec([None, documents.shape[1]], tf.float32)]
    graph = tf.function(autograph=False, input_signature=signature)
    return graph(lambda some: top_k(some, in_chunks(variable), depth))(queries)


ways = pytest.mark.parametrize("run", [eager, in_graph])


@ways
@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_equal_scores_prefer_lower_positions_across_chunks(run, monkeypatch, chunk):
    monkeypatch.setattr(module, "DOCUMENTS_PER_CHUNK", chunk)
    documents = tf.constant([[1.0], [2.0], [1.0], [2.0], [2.0]])
    scores, positions = run(tf.constant([[1.0], [0.0], [-1.0]]), documents, 4)
    assert positions.numpy().tolist() == [[1, 3, 4, 0], [0, 1, 2, 3], [0, 2, 1, 3]]
    assert scores.numpy().tolist() == [[2, 2, 2, 1], [0, 0, 0, 0], [-1, -1, -2, -2]]


@ways
@pytest.mark.parametrize("depth", [1, 5, 50, 60])
@pytest.mark.parametrize("chunk", [7, 50, 1 << 17])
def test_equals_a_full_sort(run, monkeypatch, chunk, depth):
    monkeypatch.setattr(module, "DOCUMENTS_PER_CHUNK", chunk)
    generator = np.random.default_rng(1)
    # Eighths: every sum is exact, and many scores are equal.
    queries, documents = (
        (generator.integers(-2, 3, (n, 3)) / 8).astype(np.float32) for n in (9, 50)
    )
    scores, positions = run(tf.constant(queries), tf.constant(documents), depth)
    expected = queries @ documents.T
    order = np.argsort(-expected, axis=1, kind="stable")[:, :depth]
    np.testing.assert_array_equal(positions, order)
    np.testing.assert_array_equal(scores, np.take_along_axis(expected, order, axis=1))


def test_chunks_may_be_arrays_of_any_lengths_but_not_absent():
    documents = np.arange(10, dtype=np.float32)[:, None]
    _, positions = top_k(tf.ones([1, 1]), np.split(documents, [1, 8]), 3)
    assert positions.numpy().tolist() == [[9, 8, 7]]
    with pytest.raises(ValueError, match=r"chunks: there are no documents"):
        top_k(tf.ones([1, 1]), [], 3)
