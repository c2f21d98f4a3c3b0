"""Pseudo-relevance feedback in the graph; `lexical.feedback` says what it is."""

from __future__ import annotations

import scipy.sparse as sp
import tensorflow as tf

from tf_smoothclir.lexical.feedback import DEPTH, TERMS
from tf_smoothclir.lexical.postings import SparseRows
from tf_smoothclir.publishing.exported_postings import PostingSums, SparseLists, owners, row_sums


class ExportedFeedback(tf.Module):
    """Adds feedback to the scores of a collection, as `lexical.feedback.Feedback` does."""

    def __init__(self, vectors: sp.csr_array, weight: float, depth: int = DEPTH):
        """Takes a collection as the `[documents, words]` of `tf_idf`."""
        super().__init__(name="feedback")
        self._weight = weight
        self._depth = min(depth, vectors.shape[0])
        self._terms = min(TERMS, vectors.shape[1])
        self._documents = SparseLists(SparseRows.of(vectors), vectors.shape[1])
        self._postings = PostingSums(SparseRows.of(vectors.T.tocsr()), vectors.shape[0])

    def __call__(self, scores: tf.Tensor) -> tf.Tensor:
        """`[queries, documents]` scores with feedback; of equal ones, lower places rank first."""
        queries = tf.shape(scores)[0]
        best, first = tf.math.top_k(scores, self._depth)
        shares = tf.nn.softmax(tf.where(best > 0, best, scores.dtype.min))
        weights, terms = self._heaviest_terms(first, tf.where(best > 0, shares, 0))
        rows = tf.repeat(tf.range(queries), self._terms)
        some = tf.reshape(weights, [-1]) > 0
        similar = self._postings(
            tf.boolean_mask(tf.reshape(terms, [-1]), some),
            tf.boolean_mask(tf.reshape(weights, [-1]), some),
            tf.boolean_mask(rows, some),
            queries,
        )
        # The first documents, and what equals the last of them.
        least = tf.reduce_min(tf.where(best > 0, best, best.dtype.max), axis=1, keepdims=True)
        lifted = (scores >= least) & (scores > 0)
        highest = tf.reduce_max(tf.where(lifted, similar, 0), axis=1, keepdims=True)
        return scores + self._weight * tf.where(lifted, highest, similar)

    def _heaviest_terms(self, first: tf.Tensor, shares: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The weights and ids of the words of mixtures of documents, `[queries, terms]`."""
        documents, shares = tf.reshape(first, [-1]), tf.reshape(shares, [-1])
        lengths = self._documents.lengths(documents)
        words, values = self._documents.entries(documents)
        per_query = tf.reduce_sum(tf.reshape(lengths, tf.shape(first)), axis=1)
        values *= tf.gather(shares, owners(lengths))
        mixture = row_sums(words, values, per_query, self._documents.width)
        return tf.math.top_k(mixture, self._terms)
