"""Exported towers: SavedModels from raw strings to smooth-normalised vectors, core ops only."""

from __future__ import annotations

import hashlib

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_weights
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import UNKNOWN_ID, TextEncoder
from tf_smoothclir.towers import AveragePoolingTower
from tf_smoothclir.two_tower.similarity import smooth_normalize

_TEXT = tf.TensorSpec([None], tf.string, "text")


class ExportedTower(tf.Module):
    """A tower with its tokeniser and vocabulary, as a model server loads it.

    Two signatures give `vector`, `[batch, dim]` float32:

    * `serving_default`: `text`, `[batch]` string; anything at all is fine in a row;
    * `tokens`: `ids`, `[tokens]` int32, of all texts one after the other (out-of-range ids count
      as unknown), and `lengths`, `[batch]` int32, how many each text has. Lengths that are
      negative, or whose sum is not the number of ids, are an `InvalidArgumentError`: nobody can
      say which id belongs to which text.

    A third one, `pair_id`, gives the `pair_id` that its publisher has set for each text of `text`
    (servers refuse a signature without an input): a client sees what belongs together.

    The inner product of a query vector and a document vector is their SCS, so any inner-product
    index ranks by SCS.

    An average-pooling tower also has the function `words`, which is no signature but is saved with
    the model (`tf.saved_model.load(path).words(text)`): it shows what a vector is the mean of.
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
        self.pair_id = ""
        self.weights = tf_weights(tower)
        self._epsilon = epsilon
        self._vocabulary_size = tower.vocabulary_size
        # In a closure, so that the SavedModel holds the weights but nothing of Keras.
        self._call_tower = lambda tokens: tower(tokens)
        if isinstance(tower, AveragePoolingTower):
            self._token_vectors = lambda tokens: tower.token_vectors(tokens)
            self.words = tf.function(self._words, autograph=False, input_signature=[_TEXT])

    @tf.function(autograph=False, input_signature=[_TEXT])
    def serve(self, text):
        """Encodes raw strings."""
        return self._vectors(self.encoder(text))

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None], tf.int32, "ids"),
            tf.TensorSpec([None], tf.int32, "lengths"),
        ],
    )
    def serve_tokens(self, ids, lengths):
        """Encodes token ids."""
        tokens = tf.reduce_sum(tf.cast(lengths, tf.int64))
        fits = tf.reduce_all(lengths >= 0) & (tokens == tf.size(ids, tf.int64))
        message = "lengths must be at least 0, and their sum the number of ids."
        checked = tf.debugging.Assert(fits, [message, "lengths:", lengths, "ids:", tf.size(ids)])
        with tf.control_dependencies([checked]):  # before an operation fails that says less
            lengths = tf.identity(lengths)
        known = (ids >= 0) & (ids < self._vocabulary_size)
        return self._vectors(self.encoder.complete(tf.where(known, ids, UNKNOWN_ID), lengths))

    @tf.function(autograph=False, input_signature=[_TEXT])
    def serve_pair_id(self, text):
        """Says which towers and indexes belong together."""
        return {"pair_id": tf.fill(tf.shape(text), self.pair_id)}

    @property
    def signatures(self) -> dict:
        """Signature name -> function."""
        return {
            "serving_default": self.serve,
            "tokens": self.serve_tokens,
            "pair_id": self.serve_pair_id,
        }

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
        tf.saved_model.save(self, path, signatures=self.signatures)

    def _words(self, text) -> dict[str, tf.Tensor]:
        """Returns the tokens of texts with their word vectors.

        The vector of a text is the mean of its word vectors, then tanh, then smooth-normalised;
        where words have weights, these are in the vectors.

        Args:
            text: `[batch]` string.

        Returns:
            `words`, `[tokens]` string, of all texts one after the other, as the tokeniser makes
            them and cut as for the tower; `lengths`, `[batch]` int32, how many each text has;
            `vectors`, `[tokens, dim]` float32.
        """
        tokens = self.encoder(text)
        return {
            "words": tokenize(text, self.encoder.max_tokens).flat_values,
            "lengths": tokens.lengths,
            "vectors": self._token_vectors(tokens),
        }

    def _vectors(self, tokens) -> dict[str, tf.Tensor]:
        return {"vector": smooth_normalize(self._call_tower(tokens), self._epsilon)}
