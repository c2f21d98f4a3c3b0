"""DSSM-LSTM: a bidirectional LSTM, read where it has seen the whole text."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import trace_for_devices
from tf_smoothclir.towers.sequence_tower import SequenceTower, padded

UNITS = 64


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class LSTMTower(SequenceTower):
    """DSSM-LSTM (Palangi et al. 2016) with the sizes of Liu et al. 2020, section 5.1.

    The forward state (64 units) at the last token and the backward state at the first token go to
    the fully connected layer: each has seen the whole text. (The paper says "the first hidden state
    for the forward LSTM and the last for the backward LSTM"; taken literally, these would have seen
    one token each.) See `SequenceTower` for the arguments and the call.

    The LSTM is Keras's, with the settings that have a fused cuDNN kernel; padding stands behind the
    text, as that kernel requires.
    """

    def build_reader(self):
        """Creates the weights of both directions."""
        forward, backward = (
            keras.layers.LSTM(
                UNITS,
                kernel_initializer=keras.initializers.GlorotUniform(seed=seed),
                recurrent_initializer=keras.initializers.Orthogonal(seed=seed),
                go_backwards=go_backwards,
                name=name,
            )
            for seed, go_backwards, name in (
                (self.seed + 1, False, "forward"),
                (self.seed + 2, True, "backward"),
            )
        )
        self._recurrent = keras.layers.Bidirectional(forward, backward_layer=backward)
        for layer in (self._recurrent.forward_layer, self._recurrent.backward_layer):
            trace_for_devices(layer)
        self._recurrent.build(tf.TensorShape([None, None, self.dim]))
        return 2 * UNITS

    def read(self, vectors, lengths):
        """Returns the last forward and the first backward state, `[batch, 128]`."""
        vectors = padded(vectors, lengths)
        if vectors.shape[0] == 0:  # known in eager execution, where Keras 3.15 fails
            return tf.zeros([0, 2 * UNITS], vectors.dtype)
        # An empty text is one zero vector: the fused kernel refuses a text that is all mask.
        mask = tf.sequence_mask(tf.maximum(lengths, 1), tf.shape(vectors)[1])
        return self._recurrent(vectors, mask=mask)
