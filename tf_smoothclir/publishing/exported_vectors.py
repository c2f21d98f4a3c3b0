"""The vectors of a collection as a search model holds them: exact, in int8, or by signs first."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import tensorflow as tf

from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

VECTOR_TYPES = ("float32", "int8", "binary")
_NUMBERS_PER_STEP = 1 << 20  # of int8 that are float32 at a time: 4 MB, which caches hold
_BITS = 64
_FEWEST, _TIMES_MORE = 400, 10  # candidates by their signs: at least, and for each document wanted


class CollectionVectors(Protocol):
    """Scores all documents of a collection in the graph; a `tf.Module`.

    Attributes:
        type: One of `VECTOR_TYPES`.
    """

    type: str

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


class SignedVectors(tf.Module):
    """int8 vectors, of which only those are scored whose signs agree most with the query's.

    Reading a bit a number is the fastest search; the int8 vectors of the candidates then say which
    are best. All other documents have the lowest score there is.
    """

    type = "binary"

    def __init__(self, vectors: np.ndarray, depth: int):
        """Rounds vectors.

        Args:
            vectors: `[documents, dim]` float32.
        """
        super().__init__(name="vectors")
        rounded = Int8Vectors.of(vectors)
        self._documents = len(rounded)
        self._candidates = min(self._documents, max(_FEWEST, _TIMES_MORE * depth))
        self._codes = tf.Variable(rounded.codes, trainable=False)
        self._scales = tf.Variable(rounded.scales, trainable=False)
        # [words, documents]: sums over the first axis are the fast ones.
        self._signs = tf.Variable(_words(tf.constant(rounded.codes > 0)), trainable=False)

    def scores(self, queries: tf.Tensor) -> tf.Tensor:
        """The inner products of query vectors, `[queries, dim]`: `[queries, documents]`."""
        codes = self._codes.read_value()  # single rows of a variable would make later reads copies

        def scores_of(query):
            unlike = tf.bitwise.bitwise_xor(self._signs, _words(query[None] > 0))
            unlike = tf.cast(tf.raw_ops.PopulationCount(x=unlike), tf.int32)
            near = tf.math.top_k(-tf.reduce_sum(unlike, axis=0), self._candidates).indices
            rows = tf.cast(tf.gather(codes, near), tf.float32)
            return tf.tensor_scatter_nd_update(
                tf.fill([self._documents], tf.float32.min),
                near[:, None],
                tf.linalg.matvec(rows, query * self._scales),
            )

        return tf.map_fn(
            scores_of,
            queries,
            parallel_iterations=1,  # each query at a time takes memory for all bits
            fn_output_signature=tf.TensorSpec([self._documents], tf.float32),
        )


def collection_vectors(vectors: np.ndarray, vector_type: str, depth: int) -> CollectionVectors:
    """Vectors in a form that a search model can hold.

    Args:
        vectors: `[documents, dim]` float32.
    """
    if vector_type == "binary":
        return SignedVectors(vectors, depth)
    return RoundedVectors(vectors) if vector_type == "int8" else ExactVectors(vectors)


def _words(bits: tf.Tensor) -> tf.Tensor:
    """Packs `[texts, dim]` bool into int64, `[words, texts]`; what is missing at the end is 0."""
    dim = bits.shape[1]
    padded = tf.pad(tf.cast(bits, tf.int64), [[0, 0], [0, -dim % _BITS]])
    values = tf.bitwise.left_shift(tf.ones([_BITS], tf.int64), tf.range(_BITS, dtype=tf.int64))
    words = tf.reshape(padded, [-1, (dim + _BITS - 1) // _BITS, _BITS]) * values
    return tf.transpose(tf.reduce_sum(words, axis=2))
