"""What the networks of the paper share: the cosines of the words of two texts, and weights."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tf_smoothclir.interaction.networks.base import WordTables, WordVectorNetwork
from tf_smoothclir.text.vocabulary import PADDING_ID


class Cosines(NamedTuple):
    """Cosine of each query word with each document word."""

    values: tf.Tensor  # `[batch, n, m]` float32 in [-1, 1]; 0 where either word is missing
    queries: tf.Tensor  # `[batch, n]` bool, words with a vector; padding has none
    documents: tf.Tensor  # `[batch, m]` bool, words with a vector

    @property
    def cells(self) -> tf.Tensor:
        """`[batch, n, m]` bool, where both words have a vector."""
        return self.queries[:, :, tf.newaxis] & self.documents[:, tf.newaxis]

    @classmethod
    def of(cls, tables: WordTables, query_ids: tf.Tensor, document_ids: tf.Tensor) -> Cosines:
        """Cosines of the words of `[batch, n]` and `[batch, m]` ids, without columns of padding."""
        query_ids, document_ids = without_padding(query_ids), without_padding(document_ids)
        queries, documents = tables.query_vectors(query_ids), tables.document_vectors(document_ids)
        values = tf.matmul(queries, documents, transpose_b=True)
        return cls(values, known(queries), known(documents))


def known(vectors: tf.Tensor) -> tf.Tensor:
    """Mask of words that have a vector, bool, of `[..., dim]` frozen vectors."""
    return tf.reduce_any(vectors != 0, axis=-1)


def without_padding(ids: tf.Tensor) -> tf.Tensor:
    """`[batch, longest]`: ids without the columns that are padding in all texts."""
    used = tf.reduce_any(ids != PADDING_ID, axis=0)
    longest = tf.reduce_max(tf.where(used, tf.range(1, tf.size(used) + 1), 0))
    return ids[:, : tf.maximum(longest, 1)]


class PaperNetwork(WordVectorNetwork):
    """Base of the paper's networks."""

    def _weight(self, name: str, *shape: int) -> tf.Variable:
        return self.add_weight(name=name, shape=shape, initializer="glorot_uniform")

    def _bias(self, name: str, size: int = 1) -> tf.Variable:
        return self.add_weight(name=name, shape=(size,), initializer="zeros")


class SumOfMaxima(PaperNetwork):
    """Best cosines, added up."""

    features_once = True

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tf.Tensor:
        """The score itself, `[batch]` float32."""
        cosines = Cosines.of(self.tables, query_ids, document_ids)
        best = tf.reduce_max(tf.where(cosines.cells, cosines.values, -1.0), axis=2)
        counts = cosines.queries & tf.reduce_any(cosines.documents, axis=1, keepdims=True)
        return tf.reduce_sum(tf.where(counts, best, 0.0), axis=1)

    def score(self, features: tf.Tensor, training: bool = False) -> tf.Tensor:
        """`[batch]` float32; a pair without a word with a vector has 0."""
        return features
