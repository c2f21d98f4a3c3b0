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

    With two `projection_layers`, z = tanh(A tanh(B m + c) + b).

    Li and Cheng, "Learning Neural Representation for CLIR with Adversarial Framework", EMNLP 2018,
    sections 3.1 and 4.2.1. Of the sizes that they choose from, 64 units for each direction are
    built here; they name no activation. Nothing is dropped. Only real positions count. See
    `SequenceTower` for the other arguments and the call, which returns `[batch, dim]`.
    """

    # Beside short vectors, the steps that suit the LSTM are long enough for words too.
    bilingual_scale = SequenceTower.initial_stddev
    settings = ("projection_layers",)

    def __init__(
        self,
        vocabulary_size: int,
        dim: int = 64,
        *,
        dropout: float = 0.0,
        projection_layers: int = 1,
        **kwargs,
    ):
        """Creates the tower.

        Args:
            vocabulary_size: As in `WordTableTower`.
            dim: As in `WordTableTower`; the width of each layer behind the maximum too.
            dropout: As in `SequenceTower`.
            projection_layers: Layers behind the maximum, 1 or 2 (paper: its NN_dim has 1 or 2).
            **kwargs: Of `SequenceTower`.

        Raises:
            ValueError: On any other number of layers, and as in `SequenceTower`.
        """
        super().__init__(vocabulary_size, dim, dropout=dropout, **kwargs)
        if projection_layers not in (1, 2):
            raise ValueError(f"projection_layers must be 1 or 2, but is {projection_layers}.")
        self.projection_layers = int(projection_layers)

    def build_reader(self):
        """Creates the weights of both directions, and of the first of two layers."""
        width = super().build_reader()
        if self.projection_layers == 1:
            return width
        start = keras.initializers.GlorotUniform(seed=self.seed + 3)
        self._first_layer = keras.layers.Dense(self.dim, "tanh", kernel_initializer=start)
        self._first_layer.build([None, width])
        return self.dim

    def read(self, vectors, lengths):
        """Returns what goes into the last layer, `[batch, 128]`, or `[batch, dim]` of two."""
        highest = self._highest_states(vectors, lengths)
        return highest if self.projection_layers == 1 else self._first_layer(highest)

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "projection_layers": self.projection_layers}

    def _highest_states(self, vectors, lengths):
        """The largest values of the states of each text, `[batch, 128]`."""
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
