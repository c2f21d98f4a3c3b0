"""The discriminator: names the source of a vector."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

SOURCES = ("query", "translation", "document")
_UNITS = 128


class Discriminator(keras.layers.Layer):
    """Three fully connected layers and a softmax over the sources (Li and Cheng 2018, 3.3).

    The paper gives neither widths nor activations: 128 and 128 with ReLU here. The last layer
    begins with zeros, so that all sources are alike to it at first.
    """

    def __init__(self, dim: int, seed: int = 0, **kwargs):
        super().__init__(**kwargs)
        self._dim = dim
        start = keras.initializers.GlorotUniform
        self._layers_in_order = [
            keras.layers.Dense(_UNITS, "relu", kernel_initializer=start(seed=seed)),
            keras.layers.Dense(_UNITS, "relu", kernel_initializer=start(seed=seed + 1)),
            keras.layers.Dense(len(SOURCES), kernel_initializer="zeros"),
        ]

    def build(self, input_shape=None):
        """Creates the weights."""
        width = self._dim
        for layer in self._layers_in_order:
            layer.build([None, width])
            width = layer.units
        self.built = True

    def call(self, vectors: tf.Tensor) -> tf.Tensor:
        """Logits, `[batch, 3]`, of vectors `[batch, dim]`."""
        for layer in self._layers_in_order:
            vectors = layer(vectors)
        return vectors
