"""The sum over query words of their best match: Σ_i max_j S_ij, with nothing to learn.

Not in Yu and Allan 2020. It says how much of a trained network's quality is in the vectors alone.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.papers.yu2020.networks.cosines import Cosines, PaperNetwork


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
