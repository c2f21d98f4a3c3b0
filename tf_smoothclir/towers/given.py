"""A Keras layer that Python gave, as a tower."""

import inspect

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.settings.given import given_object
from tf_smoothclir.text.tokens import flat_tokens
from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.towers.word_table import WordTableTower
from tf_smoothclir.utils.errors import input_error


def dim_of(layer: keras.layers.Layer, name: str, last_id: int = PADDING_ID) -> int:
    """The length of the vectors that a layer makes of padded ids; it is called once."""
    if isinstance(layer, WordTableTower):
        return layer.dim
    try:
        shape = layer(tf.constant([[last_id]])).shape
    except Exception as error:  # whatever the user's layer raises
        raise input_error(
            name,
            f"it cannot read padded ids up to {last_id} ({error})",
            "A tower takes [batch, length] int32 ids below vocabulary_size (give a smaller one, or"
            " a larger table) and returns [batch, dim]",
        ) from error
    if len(shape) != 2:
        reason = f"it returns {len(shape)} axes, {tuple(shape)}"
        raise input_error(name, reason, "A tower returns [batch, dim]")
    return int(shape[-1])


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class GivenTower(WordTableTower):
    """Makes a tower of a Keras layer from padded ids to vectors.

    The layer is called on `[batch, length]` int32 ids, where 0 is padding and 1 an unknown word,
    and returns `[batch, dim]`. Ids from `vocabulary_size` on, if that is less than the number of
    words, are unknown to it. A text without tokens is the zero vector.

    Attributes:
        layer: The layer.
    """

    pads_texts = True

    def __init__(self, layer: keras.layers.Layer, vocabulary_size: int, **kwargs):
        """Wraps a layer.

        Args:
            layer: From padded ids to vectors; it is called once, to see how long these are.
            vocabulary_size: How many words there are, padding and unknown included.
            **kwargs: Of the Keras layer.

        Raises:
            InputError: The layer does not take all padded ids, or returns no `[batch, dim]`.
        """
        dim = dim_of(layer, layer.name, vocabulary_size - 1)
        super().__init__(vocabulary_size, dim, **kwargs)
        self.layer = layer
        self._takes_training = "training" in inspect.signature(layer.call).parameters

    @classmethod
    def from_settings(cls, settings, vocabulary_size, *, seed, **kwargs):
        """Returns the tower of a role that Python gave; average pooling where it gave none."""
        role = kwargs["name"].removesuffix("_tower")
        layer = given_object(settings["objects"], f"{role}_tower")
        if layer is None:
            return AveragePoolingTower.from_settings(settings, vocabulary_size, seed=seed, **kwargs)
        if isinstance(layer, WordTableTower):  # which knows its own vocabulary alone
            sizes = {"vocabulary_size": vocabulary_size, "name": kwargs["name"]}
            return type(layer).from_config({**layer.get_config(), **sizes})
        return cls(layer, vocabulary_size, name=kwargs["name"])

    def _build_tables(self):
        """There is no table but those of the layer."""

    def tables(self):
        """Returns nothing; see `WordTableTower`."""
        return {}

    def call(self, tokens, training=None):
        """Returns the vectors of texts, `[batch, dim]`."""
        tokens = flat_tokens(tokens)
        known = (tokens.ids >= 0) & (tokens.ids < self.vocabulary_size)
        ids = tf.where(known, tokens.ids, UNKNOWN_ID)
        padded = tf.RaggedTensor.from_row_lengths(ids, tokens.lengths).to_tensor(PADDING_ID)
        # Layers need not take texts of length 0.
        missing = tf.maximum(1 - tf.shape(padded)[1], 0)
        padded = tf.pad(padded, [[0, 0], [0, missing]], constant_values=PADDING_ID)
        arguments = {"training": training} if self._takes_training else {}
        vectors = self.layer(padded, **arguments)
        return tf.where(tokens.lengths[:, tf.newaxis] > 0, vectors, tf.zeros_like(vectors))

    def get_config(self):
        """Returns the arguments of the constructor."""
        base = keras.layers.Layer.get_config(self)
        layer = keras.utils.serialize_keras_object(self.layer)
        return {**base, "layer": layer, "vocabulary_size": self.vocabulary_size}

    @classmethod
    def from_config(cls, config):
        """Restores a tower from `get_config`."""
        layer = keras.utils.deserialize_keras_object(config["layer"])
        return cls(**{**config, "layer": layer})
