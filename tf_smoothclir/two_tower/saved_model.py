"""A two-tower Keras model as a SavedModel: texts of any number and length in, scores out."""

from __future__ import annotations

import os

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.towers.text_tower import TextTower


class ScoringModel(tf.Module):
    """Scores pairs of texts; holds the weights and vocabularies of a model, but nothing of Keras.

    Its function `serve`, which is the signature `serving_default` too, takes `query` and
    `document`, and returns `score`, `[batch]` float32.
    """

    def __init__(self, model: keras.Model):
        super().__init__(name="scoring_model")
        towers = {"query": model.query_tower, "document": model.document_tower}
        signature = [_signature(tower, name) for name, tower in towers.items()]
        model.check_built()
        self.weights = tf_weights(model)
        self.encoders = [t.encoder for t in towers.values() if isinstance(t, TextTower)]

        def serve(query, document):
            inputs = {"query": query, "document": document}
            return {"score": model(inputs, training=False)}

        self.serve = tf.function(serve, autograph=False, input_signature=signature)

    def save(self, path: str | os.PathLike) -> None:
        """Writes the SavedModel."""
        tf.saved_model.save(self, os.fspath(path), signatures=self.serve)


def _signature(tower: keras.layers.Layer, name: str) -> tf.TensorSpec:
    if isinstance(tower, TextTower):
        return tf.TensorSpec([None], tf.string, name)
    if getattr(tower, "ngram_buckets", 0):
        raise ValueError(
            f"{name} tower: it needs n-grams, which ids alone do not have. Wrap it in a TextTower,"
            " whose export takes strings."
        )
    return tf.TensorSpec([None, None], tf.int32, name)
