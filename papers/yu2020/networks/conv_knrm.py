"""Conv-KNRM (Dai et al., WSDM 2018) over frozen word vectors of two languages.

Convolutions turn one, two and three neighbouring words into vectors of n-grams, with the same
weights on both sides, because both languages share a space. Kernels pool the cosines of each length
of query n-grams with each length of document n-grams, so that a word can match a phrase.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.interaction.learning import HINGE, LearningSettings
from tf_smoothclir.interaction.networks.word_tables import WordTables
from tf_smoothclir.papers.yu2020.networks.cosines import (
    Cosines,
    PaperNetwork,
    known,
    without_padding,
)
from tf_smoothclir.papers.yu2020.networks.kernels import kernel_features, kernels

_SMALLEST = 1e-12  # of squares: a zero vector stays zero, and its gradient finite


class ConvKnrm(PaperNetwork):
    """Conv-KNRM."""

    learning = LearningSettings(HINGE, epochs=3, patience=2)

    def __init__(
        self,
        tables: WordTables,
        *,
        longest: int = 3,
        filters: int = 128,
        number: int = 11,
        **kwargs,
    ):
        super().__init__(tables, **kwargs)
        self.kernels = kernels(number)
        sizes = range(1, longest + 1)
        self.convolutions = [self._weight(f"kernels_{s}", s, tables.dim, filters) for s in sizes]
        self.biases = [self._bias(f"bias_{s}", filters) for s in sizes]
        self.weight = self._weight("weight", number * longest**2, 1)
        self.bias = self._bias("bias")

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The ids themselves: training changes everything that is made of them."""
        return query_ids, document_ids

    def score(self, features: tuple[tf.Tensor, ...], training: bool = False) -> tf.Tensor:
        query_ids, document_ids = map(without_padding, features)
        vectors = self.tables.query_vectors(query_ids), self.tables.document_vectors(document_ids)
        (queries, documents), there = map(self._ngrams, vectors), [*map(known, vectors)]
        pooled = [
            kernel_features(Cosines(tf.matmul(q, d, transpose_b=True), *there), self.kernels)
            for q in queries
            for d in documents
        ]
        return tf.matmul(tf.concat(pooled, axis=1), self.weight)[:, 0] + self.bias

    def _ngrams(self, vectors: tf.Tensor) -> list[tf.Tensor]:
        """The unit vectors of the n-grams that begin at each word, by length."""
        found = []
        for weights, bias in zip(self.convolutions, self.biases):
            behind = weights.shape[0] - 1  # the same zeros after a text with and without padding
            padded = tf.pad(vectors, [(0, 0), (0, behind), (0, 0)])
            ngrams = tf.nn.relu(tf.nn.conv1d(padded, weights, 1, "VALID") + bias)
            squares = tf.reduce_sum(tf.square(ngrams), axis=-1, keepdims=True)
            found.append(ngrams * tf.math.rsqrt(tf.maximum(squares, _SMALLEST)))
        return found
