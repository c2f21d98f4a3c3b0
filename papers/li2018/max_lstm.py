"""A bidirectional LSTM whose states are pooled: the text encoder of Li and Cheng 2018."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.towers.lstm import BidirectionalTower
from tf_smoothclir.towers.sequence_tower import SequenceTower, places


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class MaxLSTMTower(BidirectionalTower):
    """The largest value of each state of a bidirectional LSTM over the positions of a text.

        m = max_t [h_forward(t), h_backward(t)],  z = tanh(A m + b)

    Li and Cheng, "Learning Neural Representation for CLIR with Adversarial Framework", EMNLP 2018,
    sections 3.1 and 4.2.1. Of the sizes that they choose from, 64 units for each direction are
    built here; they name no activation. Nothing is dropped. Only real positions count. See
    `SequenceTower` for the other arguments and the call, which returns `[batch, dim]`.
    """

    # Beside short vectors, the steps that suit the LSTM are long enough for words too.
    bilingual_scale = SequenceTower.initial_stddev

    def __init__(self, vocabulary_size: int, dim: int = 64, *, dropout: float = 0.0, **kwargs):
        """Creates the tower; the arguments are those of `SequenceTower`."""
        super().__init__(vocabulary_size, dim, dropout=dropout, **kwargs)

    def read(self, vectors, lengths):
        """Returns the largest values of the states of each text, `[batch, 128]`."""
        texts, place = places(lengths)
        from_the_end = tf.gather(lengths, texts) - 1 - place
        # An empty text has the state after one zero vector: infinity times 0 would be no number.
        real = tf.transpose(tf.sequence_mask(tf.maximum(lengths, 1)))[:, :, tf.newaxis]
        highest = []
        for direction, steps in ((self._forward, place), (self._backward, from_the_end)):
            states = direction.states(vectors, texts, steps, lengths)
            states = tf.where(real, states, tf.fill(tf.shape(states), states.dtype.min))
            highest.append(tf.reduce_max(states, axis=0))
        return tf.concat(highest, axis=1)
