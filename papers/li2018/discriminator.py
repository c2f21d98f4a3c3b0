"""The discriminator: names the source of a vector."""

from __future__ import annotations

from tensorflow import keras

SOURCES = ("query", "translation", "document")
_UNITS = 128


def discriminator(dim: int, seed: int = 0) -> keras.Model:
    """Three fully connected layers: logits `[batch, 3]` of the sources of vectors `[batch, dim]`.

    The paper (3.3) gives neither widths nor activations: 128 and 128 with ReLU here. The last layer
    begins with zeros, so that all sources are alike to it at first.
    """
    start, dense = keras.initializers.GlorotUniform, keras.layers.Dense
    model = keras.Sequential(
        [
            dense(_UNITS, "relu", kernel_initializer=start(seed=seed)),
            dense(_UNITS, "relu", kernel_initializer=start(seed=seed + 1)),
            dense(len(SOURCES), kernel_initializer="zeros"),
        ]
    )
    model.build((None, dim))
    return model
