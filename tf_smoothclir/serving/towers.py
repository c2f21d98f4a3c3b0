"""Exported towers: SavedModels from raw strings to smooth-normalised vectors, core ops only."""

from __future__ import annotations

import hashlib

import numpy as np
import tensorflow as tf

from tf_smoothclir.similarity import smooth_normalize
from tf_smoothclir.text.vocabulary import UNKNOWN_ID, TextEncoder


class ServingTower(tf.Module):
    """A tower with its tokeniser and vocabulary, as a model server loads it.

    Signatures, both giving `vector`, `[batch, dim]` float32:

    * `serving_default`: `text`, `[batch]` string; anything at all is fine in a row;
    * `tokens`: `ids`, `[tokens]` int32, of all texts one after the other (out-of-range ids count
      as unknown), and `lengths`, `[batch]` int32, how many each text has.

    The inner product of a query vector and a document vector is their SCS, so any inner-product
    index ranks by SCS.
    """

    def __init__(self, tower, encoder: TextEncoder, *, epsilon: float, name: str):
        """Wraps a trained tower.

        Args:
            tower: Keras layer from tokens to `[batch, dim]`.
            encoder: The vocabulary that the tower was trained with.
            epsilon: ε of the similarity.
            name: "query_tower" or "document_tower".
        """
        super().__init__(name=name)
        self.encoder = encoder
        self.weights = list(tower.weights)
        self._epsilon = epsilon
        self._vocabulary_size = tower.vocabulary_size
        # In a closure, so that the SavedModel holds the weights but nothing of Keras.
        self._call_tower = lambda tokens: tower(tokens)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
    def serve(self, text):
        """Encodes raw strings."""
        return self._vectors(self.encoder(text))

    @tf.function(
        input_signature=[
            tf.TensorSpec([None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.int32, "lengths"),
        ]
    )
    def serve_tokens(self, ids, lengths):
        """Encodes token ids."""
        known = (ids >= 0) & (ids < self._vocabulary_size)
        return self._vectors({"ids": tf.where(known, ids, UNKNOWN_ID), "lengths": lengths})

    def digest(self) -> str:
        """Returns a digest of everything that decides about the vectors."""
        parts = hashlib.sha256()
        for weight in self.weights:
            parts.update(np.ascontiguousarray(weight))
        text = f"{self.encoder.vocabulary_digest} {self.encoder.max_tokens} {self._epsilon!r}"
        parts.update(text.encode())
        return parts.hexdigest()

    def save(self, path: str) -> None:
        """Writes the SavedModel."""
        signatures = {"serving_default": self.serve, "tokens": self.serve_tokens}
        tf.saved_model.save(self, path, signatures=signatures)

    def _vectors(self, tokens) -> dict[str, tf.Tensor]:
        return {"vector": smooth_normalize(self._call_tower(tokens), self._epsilon)}
