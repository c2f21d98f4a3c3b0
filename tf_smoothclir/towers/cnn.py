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

    300 filters with tanh look at windows of three tokens; the largest value of each filter over the
    windows goes to the fully connected layer. Each token has a window, in which it stands between
    its neighbours; a zero vector stands before the first and after the last token of a text. With
    `as_published`, windows lie inside the text, and no tanh follows the fully connected layer; a
    text of one or two tokens has one window, which ends with zero vectors. No padding is computed.
    See `SequenceTower` for the arguments and the call.
    """

    published_activation = None
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
        windows = self._windows(vectors, place, tf.gather(lengths, texts))
        if self.as_published:
            is_inside = place <= tf.maximum(tf.gather(lengths, texts) - WINDOW, 0)
            windows, texts = (tf.boolean_mask(each, is_inside) for each in (windows, texts))
        filters = tf.convert_to_tensor(self._filters)
        highest = largest_responses(windows, filters, texts, tf.size(lengths))
        highest = tf.where(lengths[:, tf.newaxis] > 0, highest, tf.zeros_like(highest))
        # Both are increasing, so they commute with the maximum, and work on far fewer numbers.
        return tf.tanh(highest + self._biases)

    def _windows(self, vectors, place, lengths) -> tf.Tensor:
        """Returns `[tokens, 3 * dim]`: the vectors in the window of each token.

        Args:
            vectors: `[tokens, dim]`.
            place: `[tokens]` int, where in its text each token stands.
            lengths: `[tokens]` int, how many tokens its text has.
        """
        start = 0 if self.as_published else -1
        parts = []
        for offset in range(start, start + WINDOW):
            is_there = (place + offset >= 0) & (place + offset < lengths)
            neighbours = tf.roll(vectors, -offset, axis=0)
            parts.append(tf.where(is_there[:, tf.newaxis], neighbours, tf.zeros_like(neighbours)))
        return tf.concat(parts, axis=1)


def largest_responses(
    windows: tf.Tensor, filters: tf.Tensor, texts: tf.Tensor, batch: tf.Tensor
) -> tf.Tensor:
    """Returns `[batch, filters]`, the largest response of each text to each filter.

    Its value and gradients are those of `tf.math.unsorted_segment_max` of the matrix product.
    Of all responses of a text to a filter, one has a gradient, so going back takes two products
    with a sparse matrix, which is several times as fast as with a dense one.

    Args:
        windows: `[windows, width]`.
        filters: `[width, filters]`.
        texts: `[windows]` int, the text of each window.
        batch: Number of texts.
    """

    @tf.custom_gradient
    def largest(windows, filters):
        responses = tf.matmul(windows, filters)
        highest = tf.math.unsorted_segment_max(responses, texts, batch)

        def gradient(upstream):
            winners = tf.where(tf.equal(responses, tf.gather(highest, texts)))
            of_texts = tf.gather(tf.cast(texts, tf.int64), winners[:, 0])
            cells = tf.stack([of_texts, winners[:, 1]], axis=1)
            # Equal responses share the gradient.
            ones = tf.ones(tf.shape(winners)[:1], upstream.dtype)
            number = tf.scatter_nd(cells, ones, tf.shape(upstream, tf.int64))
            shares = tf.gather_nd(tf.math.divide_no_nan(upstream, number), cells)
            shares = tf.SparseTensor(winners, shares, tf.shape(responses, tf.int64))
            product = tf.sparse.sparse_dense_matmul
            of_filters = product(shares, windows, adjoint_a=True)
            return product(shares, tf.transpose(filters)), tf.transpose(of_filters)

        return highest, gradient

    return largest(windows, filters)
