"""The vectors of a collection as a search model holds them: exact, or in int8."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import tensorflow as tf

from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

VECTOR_TYPES = ("float32", "int8")
_NUMBERS_PER_STEP = 1 << 20  # of int8 that are float32 at a time: 4 MB, which caches hold


class CollectionVectors(Protocol):
    """Scores all documents of a collection in the graph; a `tf.Module`."""

    type: str  # one of `VECTOR_TYPES`

    def scores(self, queries: tf.Tensor) -> tf.Tensor:
        """The inner products of query vectors, `[queries, dim]`: `[queries, documents]`."""


class ExactVectors(tf.Module):
    """Vectors as the document tower made them."""

    type = "float32"

    def __init__(self, vectors: np.ndarray):
        super().__init__(name="vectors")
        self._vectors = tf.Variable(vectors, trainable=False)

    def scores(self, queries: tf.Tensor) -> tf.Tensor:
        """The inner products of query vectors, `[queries, dim]`: `[queries, documents]`."""
        return tf.matmul(queries, self._vectors, transpose_b=True)


class RoundedVectors(tf.Module):
    """Vectors of a byte a number, with a scale for each dimension: a quarter of the memory.

    Scores are those of the rounded vectors. Some documents at a time become float32, so the
    request needs no more memory than with exact vectors.
    """

    type = "int8"

    def __init__(self, vectors: np.ndarray):
        super().__init__(name="vectors")
        rounded = Int8Vectors.of(vectors)
        self._documents, dim = rounded.shape
        rows = min(self._documents, max(1, _NUMBERS_PER_STEP // dim))
        self._steps = -(-self._documents // rows)
        padding = self._steps * rows - self._documents
        codes = np.pad(rounded.codes, ((0, padding), (0, 0))).reshape(self._steps, rows, dim)
        self._codes = tf.Variable(codes, trainable=False)
        self._scales = tf.Variable(rounded.scales, trainable=False)

    def scores(self, queries: tf.Tensor) -> tf.Tensor:
        """The inner products of query vectors, `[queries, dim]`: `[queries, documents]`."""
        weights = queries * self._scales

        def scores_of(step):
            return tf.matmul(weights, tf.cast(self._codes[step], tf.float32), transpose_b=True)

        found = tf.map_fn(
            scores_of,
            tf.range(self._steps),
            parallel_iterations=1,
            fn_output_signature=tf.TensorSpec([None, self._codes.shape[1]], tf.float32),
        )
        found = tf.reshape(tf.transpose(found, [1, 0, 2]), [tf.shape(queries)[0], -1])
        return tf.ensure_shape(found[:, : self._documents], [None, self._documents])


def collection_vectors(vectors: np.ndarray, vector_type: str) -> CollectionVectors:
    """`[documents, dim]` float32 vectors in a form that a search model can hold."""
    return RoundedVectors(vectors) if vector_type == "int8" else ExactVectors(vectors)
