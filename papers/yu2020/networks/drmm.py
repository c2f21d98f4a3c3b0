"""DRMM (Guo et al., CIKM 2016) with log-count histograms, as in Yu and Allan, SIGIR 2020.

    s(q, d) = Σ_i g_i FFN(log(1 + H_i)),    g = softmax_i(w · e(q_i))

H_i counts the cosines of query word i with all words of the document in 30 bins. Bin b holds the
cosines from 2 b / 29 - 1 up to the next; the last one holds 1 alone, the same word.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.interaction.learning import HINGE, LearningSettings
from tf_smoothclir.interaction.networks.base import WordTables
from tf_smoothclir.papers.yu2020.networks.cosines import Cosines, PaperNetwork, without_padding

_ROUNDING = 1e-5  # lifts the cosine of a word with itself, such as 0.9999999, into the last bin


def bins_of(values: tf.Tensor, number: int) -> tf.Tensor:
    """The bin of each cosine, int32 in [0, number)."""
    places = tf.floor((values + 1) / 2 * (number - 1) + _ROUNDING)
    return tf.clip_by_value(tf.cast(places, tf.int32), 0, number - 1)


def histograms(cosines: Cosines, number: int) -> tf.Tensor:
    """`[batch, n, number]` float32 counts; missing words are counted nowhere."""
    shape = tf.shape(cosines.values)
    rows = shape[0] * shape[1]
    first = tf.reshape(tf.range(rows) * number, [shape[0], shape[1], 1])
    places = tf.reshape(bins_of(cosines.values, number) + first, [-1])
    ones = tf.reshape(tf.cast(cosines.cells, tf.float32), [-1])
    counts = tf.math.unsorted_segment_sum(ones, places, rows * number)
    return tf.reshape(counts, [shape[0], shape[1], number])


class Drmm(PaperNetwork):
    """DRMM with the gate by term vectors."""

    features_once = True

    learning = LearningSettings(HINGE, epochs=20, patience=5)

    def __init__(self, tables: WordTables, bins: int = 30, hidden: int = 10, **kwargs):
        super().__init__(tables, **kwargs)
        self._bins = bins
        self.hidden = self._weight("hidden", bins, hidden)
        self.hidden_bias = self._bias("hidden_bias", hidden)
        self.output_weight = self._weight("output_weight", hidden, 1)
        self.output_bias = self._bias("output_bias")
        self.gate = self._weight("gate", tables.dim, 1)

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The counts of the histograms, `[batch, n, bins]` uint16, and `query_ids`."""
        words = without_padding(query_ids)
        cosines = Cosines.of(self.tables, words, document_ids)
        counts = histograms(cosines, self._bins)
        missing = tf.shape(query_ids)[1] - tf.shape(words)[1]
        counts = tf.pad(counts, [(0, 0), (0, missing), (0, 0)])
        return tf.cast(tf.minimum(counts, 65535.0), tf.uint16), query_ids

    def score(self, features: tuple[tf.Tensor, ...], training: bool = False) -> tf.Tensor:
        counts, query_ids = features
        logs = tf.math.log1p(tf.cast(counts, tf.float32))
        inner = tf.tanh(_times(logs, self.hidden) + self.hidden_bias)
        of_words = (_times(inner, self.output_weight) + self.output_bias)[:, :, 0]
        return tf.reduce_sum(self.gates(query_ids) * of_words, axis=1)

    def gates(self, query_ids: tf.Tensor) -> tf.Tensor:
        """`[batch, n]` float32, what each query word counts: 1 in all; 0 without known words."""
        logits = _times(self.tables.query_vectors(query_ids), self.gate)[:, :, 0]
        known = self.tables.known_queries(query_ids)
        logits = tf.where(known, logits, logits.dtype.min)
        highest = tf.stop_gradient(tf.reduce_max(logits, axis=1, keepdims=True))
        powers = tf.where(known, tf.exp(logits - highest), 0.0)
        return tf.math.divide_no_nan(powers, tf.reduce_sum(powers, axis=1, keepdims=True))


def _times(rows: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """`[batch, n, out]`: one product of all rows, which is faster than one of each text."""
    shape = tf.shape(rows)
    flat = tf.matmul(tf.reshape(rows, [-1, matrix.shape[0]]), matrix)
    return tf.reshape(flat, [shape[0], shape[1], matrix.shape[1]])
