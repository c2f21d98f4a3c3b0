"""DSSM-CNN: a convolution over word windows, then max pooling."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.towers.sequence_tower import SequenceTower, places

WINDOW = 3
FILTERS = 300


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class CNNTower(SequenceTower):
    """DSSM-CNN (Shen et al. 2014) with the sizes of Liu et al. 2020, section 5.1.

    300 filters with tanh look at each token between its two neighbours; a zero vector stands before
    the first and after the last token of a text. The largest value of each filter over the tokens
    goes to the fully connected layer. No padding is computed. See `SequenceTower` for the arguments
    and the call.
    """

    # As large as random vectors; the filters hardly learn from vectors ten times as large.
    bilingual_scale = SequenceTower.initial_stddev

    def build_reader(self):
        """Creates the filters, `[3 * dim, 300]`, and their biases."""
        self._filters = self.add_weight(
            name="filters",
            shape=(WINDOW * self.dim, FILTERS),
            initializer=keras.initializers.GlorotUniform(seed=self.seed + 1),
        )
        self._biases = self.add_weight(name="biases", shape=(FILTERS,), initializer="zeros")
        return FILTERS

    def read(self, vectors, lengths):
        """Returns the largest value of each filter, `[batch, 300]`."""
        texts, place = places(lengths)
        first, last = place == 0, place == tf.gather(lengths, texts) - 1
        responses = tf.matmul(_windows(vectors, first, last), self._filters)
        highest = tf.math.unsorted_segment_max(responses, texts, tf.size(lengths))
        highest = tf.where(lengths[:, tf.newaxis] > 0, highest, tf.zeros_like(highest))
        # Both are increasing, so they commute with the maximum, and work on far fewer numbers.
        return tf.tanh(highest + self._biases)


def _windows(vectors: tf.Tensor, first: tf.Tensor, last: tf.Tensor) -> tf.Tensor:
    """Returns `[tokens, 3 * dim]`: the vectors before, at and after each token."""
    edge = tf.zeros_like(vectors[:1])
    before = tf.concat([edge, vectors[:-1]], axis=0)
    after = tf.concat([vectors[1:], edge], axis=0)
    before = tf.where(first[:, tf.newaxis], tf.zeros_like(before), before)
    after = tf.where(last[:, tf.newaxis], tf.zeros_like(after), after)
    return tf.concat([before, vectors, after], axis=1)
