"""The paper's tower: the mean of the word vectors, then tanh."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.towers.padding import distinct_tokens


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class AveragePoolingTower(keras.layers.Layer):
    """Average pooling over word embeddings, followed by tanh (Liu et al. 2020, section 3.2).

    Only real tokens enter the mean; a text without any is the zero vector. Each distinct token of a
    batch is read once, and the gradient of the table is sparse.

    Called on token ids in either of two forms:

    * flat: `{"ids": [tokens] int, "lengths": [batch] int}`, the tokens of all texts one after the
      other and how many each text has; with "distinct" and "positions", which are `tf.unique` of
      the ids, where the input pipeline has found them already;
    * padded: `[batch, length]` int, where id 0 is padding.

    Returns `[batch, dim]` float.
    """

    def __init__(
        self,
        vocabulary_size: int,
        dim: int = 64,
        *,
        embeddings_initializer="random_normal",
        train_embeddings: bool = True,
        **kwargs,
    ):
        """Creates the tower.

        Args:
            vocabulary_size: Rows of the embedding table, padding (0) and unknown (1) included.
            dim: Length of the vectors (paper: 64).
            embeddings_initializer: Keras initializer of the table. "random_normal", the default,
                draws from N(0, 1) as in the authors' code; the scale matters, because with
                epsilon = 1 short vectors have small scores.
            train_embeddings: False freezes the table.
            **kwargs: Of the Keras layer.

        Raises:
            ValueError: On sizes below 1.
        """
        super().__init__(**kwargs)
        for argument, value in {"vocabulary_size": vocabulary_size, "dim": dim}.items():
            if int(value) < 1:
                raise ValueError(f"{argument} must be at least 1, but is {value}.")
        self.vocabulary_size = int(vocabulary_size)
        self.dim = int(dim)
        self.train_embeddings = bool(train_embeddings)
        if embeddings_initializer == "random_normal":
            embeddings_initializer = keras.initializers.RandomNormal(stddev=1.0)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)

    def build(self, input_shape=None):
        """Creates the embedding table, `[vocabulary_size, dim]`."""
        if self.built:
            return
        self.embeddings = self.add_weight(
            name="embeddings",
            shape=(self.vocabulary_size, self.dim),
            initializer=self.embeddings_initializer,
            trainable=self.train_embeddings,
        )
        self.built = True

    def call(self, tokens):
        """Encodes texts; see the class."""
        distinct, positions, lengths = distinct_tokens(tokens)
        texts = tf.size(lengths)
        return tf.tanh(
            tf.sparse.segment_mean(
                tf.gather(self.embeddings, distinct),
                positions,
                tf.repeat(tf.range(texts), lengths),
                num_segments=texts,  # keeps texts without a token, as zero vectors
            )
        )

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {
            **super().get_config(),
            "vocabulary_size": self.vocabulary_size,
            "dim": self.dim,
            "embeddings_initializer": keras.initializers.serialize(self.embeddings_initializer),
            "train_embeddings": self.train_embeddings,
        }
