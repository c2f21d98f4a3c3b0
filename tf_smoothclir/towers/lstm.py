"""DSSM-LSTM, and the base of towers with a bidirectional LSTM in TensorFlow's fused kernel."""

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.towers.sequence_tower import SequenceTower, places

UNITS = 64


class BidirectionalTower(SequenceTower):
    """Base of towers that read the word vectors in both directions, each with an LSTM of 64 units.

    A subclass makes `[batch, 128]` of their states in `read`. The weights are those of Keras's
    `Bidirectional(LSTM(64))`.
    """

    is_recurrent = True

    def build_reader(self):
        """Creates the weights of both directions."""
        self._forward = Direction(self.dim, self.seed + 1, name="forward")
        self._backward = Direction(self.dim, self.seed + 2, name="backward")
        for direction in (self._forward, self._backward):
            direction.build(None)
        return 2 * UNITS


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class LSTMTower(BidirectionalTower):
    """DSSM-LSTM (Palangi et al. 2016) with the sizes of Liu et al. 2020, section 5.1.

    A state of each direction goes to the fully connected layer. That of the backward LSTM stands at
    the first token and has seen the whole text. That of the forward LSTM stands at the last token
    and has seen the whole text too, or with `as_published` at the first token, of which alone it
    knows: "the first hidden state for the forward LSTM and the last hidden state for the backward
    LSTM", says the paper, and its authors' code reads both directions at position 0.

    See `SequenceTower` for the arguments and the call. The result is that of Keras's
    `Bidirectional(LSTM(64))`.
    """

    def read(self, vectors, lengths):
        """Returns a forward and a backward state of each text, `[batch, 128]`."""
        texts, place = places(lengths)
        from_the_end = tf.gather(lengths, texts) - 1 - place
        if self.as_published:
            first = place == 0
            forward = self._forward(
                tf.boolean_mask(vectors, first),
                tf.boolean_mask(texts, first),
                tf.boolean_mask(place, first),
                tf.minimum(lengths, 1),
            )
        else:
            forward = self._forward(vectors, texts, place, lengths)
        return tf.concat([forward, self._backward(vectors, texts, from_the_end, lengths)], axis=1)


class Direction(keras.layers.Layer):
    """An LSTM that reads texts in one direction, with the weights of `keras.layers.LSTM`.

    A layer of its own, which fixes the order of the tower's weights: checkpoints know them by it.
    """

    def __init__(self, dim: int, seed: int, **kwargs):
        super().__init__(**kwargs)
        self.supports_jit = False
        self._dim = dim
        self._seed = seed

    def build(self, input_shape=None):
        """Creates the weights; the forget gate begins open, with a bias of 1."""
        self._kernel = self.add_weight(
            name="kernel",
            shape=(self._dim, 4 * UNITS),
            initializer=keras.initializers.GlorotUniform(seed=self._seed),
        )
        self._recurrent = self.add_weight(
            name="recurrent_kernel",
            shape=(UNITS, 4 * UNITS),
            initializer=keras.initializers.Orthogonal(seed=self._seed),
        )
        self._bias = self.add_weight(name="bias", shape=(4 * UNITS,), initializer=_open_forget_gate)
        self.built = True

    def call(self, vectors, texts, steps, lengths):
        """The state of each text after its last step, `[batch, 64]`."""
        # The kernel works on one core, so the shorter and the longer half of the texts are read
        # side by side, and the shorter one takes fewer steps.
        by_length = tf.argsort(lengths, stable=True)
        rank = tf.math.invert_permutation(by_length)
        # The kernel's gradient of no text at all is whatever the memory holds: no half is empty.
        half = tf.maximum((tf.size(lengths) + 1) // 2, 1)
        filled = tf.pad(tf.gather(lengths, by_length), [[0, 2 * half - tf.size(lengths)]])
        last = tf.reshape(tf.maximum(filled, 1) - 1, [2, half])
        longest = tf.reduce_max(last, axis=1) + 1
        rank_of_token = tf.gather(rank, texts)
        begins = tf.where(rank_of_token < half, 0, half * longest[0])
        rows = begins + half * steps + rank_of_token % half
        shape = tf.stack([half * tf.reduce_sum(longest), self._dim])
        inputs = tf.split(tf.scatter_nd(rows[:, tf.newaxis], vectors, shape), half * longest, num=2)
        found = []
        for part, ends in zip(inputs, tf.unstack(last)):
            states = self.scan(tf.reshape(part, tf.stack([-1, half, self._dim])))
            found.append(tf.gather_nd(states, tf.stack([ends, tf.range(half)], axis=1)))
        return tf.gather(tf.concat(found, axis=0), rank)

    def scan(self, inputs):
        """The states of `[steps, batch, dim]`; after the end of a text, others follow."""
        batch = tf.shape(inputs)[1]
        start, unused = tf.zeros([batch, UNITS], inputs.dtype), tf.zeros([UNITS], inputs.dtype)
        # TensorFlow's gradient of BlockLSTMV2 is that of this version, and so is wrong there.
        return tf.raw_ops.BlockLSTM(
            seq_len_max=tf.shape(inputs, tf.int64)[0],
            x=inputs,
            cs_prev=start,
            h_prev=start,
            w=_gates_in_order(tf.concat([self._kernel, self._recurrent], axis=0)),
            wci=unused,
            wcf=unused,
            wco=unused,
            b=_gates_in_order(tf.convert_to_tensor(self._bias)),
            forget_bias=0.0,  # the bias has it already
            cell_clip=-1.0,  # never
        ).h


def _gates_in_order(weights: tf.Tensor) -> tf.Tensor:
    """Weights with the gates in the kernel's order i, c, f, o; Keras's is i, f, c, o."""
    entrance, forget, candidate, exit_ = tf.split(weights, 4, axis=-1)
    return tf.concat([entrance, candidate, forget, exit_], axis=-1)


def _open_forget_gate(shape, dtype=None):
    """The initial bias of the gates i, f, c, o."""
    zeros, ones = tf.zeros([UNITS], dtype), tf.ones([UNITS], dtype)
    return tf.concat([zeros, ones, zeros, zeros], axis=0)
