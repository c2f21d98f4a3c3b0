"""DSSM-CNN: a convolution over word windows, then max pooling."""

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
        stream, texts = self._stream(vectors, lengths)
        filters = tf.convert_to_tensor(self._filters)
        highest = largest_responses(stream, texts, filters, tf.size(lengths))
        highest = tf.where(lengths[:, tf.newaxis] > 0, highest, tf.zeros_like(highest))
        # Both are increasing, so they commute with the maximum, and work on far fewer numbers.
        return tf.tanh(highest + self._biases)

    def _stream(self, vectors, lengths) -> tuple[tf.Tensor, tf.Tensor]:
        """Lays texts out one after the other, with zero vectors where a window may look."""
        # From `[tokens, dim]` vectors: the vectors, `[windows + 2, dim]`, and `[windows]` int, the
        # text in which the window that begins at a vector lies; -1 where it lies in two.
        edge = 0 if self.as_published else WINDOW // 2
        room = tf.maximum(lengths + 2 * edge, WINDOW)
        texts, place = places(lengths)
        begins = tf.cumsum(room, exclusive=True)
        rows = tf.gather(begins, texts) + edge + place
        after, place_after = places(room)
        fits = place_after + WINDOW <= tf.gather(room, after)
        size = tf.size(after) + WINDOW - 1
        stream = tf.scatter_nd(rows[:, tf.newaxis], vectors, tf.stack([size, self.dim]))
        return stream, tf.where(fits, after, -1)


def largest_responses(
    stream: tf.Tensor, texts: tf.Tensor, filters: tf.Tensor, batch: tf.Tensor
) -> tf.Tensor:
    """The largest response of each text to each filter, `[batch, filters]`."""
    # The window at a row of the stream, `[windows + width - 1, dim]`, is that row and those
    # after it; `texts`, `[windows]`, is -1 for none. Value and gradients are those of
    # `tf.math.unsorted_segment_max` of a convolution. Of all responses of a text to a filter,
    # one has a gradient, so going back takes products with a sparse matrix, which is several
    # times as fast as with a dense one.
    dim, number = stream.shape[1], filters.shape[1]
    width = filters.shape[0] // dim

    @tf.custom_gradient
    def largest(stream, filters):
        count = tf.size(texts)
        windows = tf.concat([stream[k : count + k] for k in range(width)], axis=1)
        # Not by a convolution, whose last bits differ from one release to the next.
        responses = tf.matmul(windows, filters)
        highest = tf.math.unsorted_segment_max(responses, texts, batch)

        def gradient(upstream):
            own = tf.gather(highest, tf.maximum(texts, 0))
            winners = tf.where(tf.equal(responses, own) & (texts >= 0)[:, tf.newaxis])
            shares = _shares(upstream, winners, tf.gather(texts, winners[:, 0]))
            product = tf.sparse.sparse_dense_matmul
            of_windows = tf.SparseTensor(winners, shares, tf.shape(responses, tf.int64))
            of_filters = product(of_windows, windows, adjoint_a=True)
            # Row by row of the stream, for each place of it in a window.
            rows = [winners + tf.constant([k, k * number], tf.int64) for k in range(width)]
            shape = tf.stack([tf.shape(stream, tf.int64)[0], width * number])
            of_rows = tf.SparseTensor(tf.concat(rows, 0), tf.tile(shares, [width]), shape)
            by_place = tf.transpose(tf.reshape(filters, [width, dim, number]), [0, 2, 1])
            of_stream = product(of_rows, tf.reshape(by_place, [width * number, dim]))
            return of_stream, tf.transpose(of_filters)

        return highest, gradient

    return largest(stream, filters)


def _shares(upstream: tf.Tensor, winners: tf.Tensor, texts: tf.Tensor) -> tf.Tensor:
    """The gradient of each largest response, `[winners]`; equal responses share it."""
    cells = tf.stack([tf.cast(texts, tf.int64), winners[:, 1]], axis=1)
    ones = tf.ones(tf.shape(winners)[:1], upstream.dtype)
    equals = tf.scatter_nd(cells, ones, tf.shape(upstream, tf.int64))
    return tf.gather_nd(tf.math.divide_no_nan(upstream, equals), cells)
