"""Texts to token ids and the character n-grams of their words, in the graph."""

from __future__ import annotations

import hashlib
import os

import tensorflow as tf

from tf_smoothclir.settings.run import TextSettings
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.vocabulary import UNKNOWN_ID, TextEncoder, words_by_id


class SubwordTextEncoder(TextEncoder):
    """A `TextEncoder` for towers with `ngram_buckets`.

    What it returns is all that such a tower takes: `ids` and `lengths` as `TextEncoder` gives them,
    "texts", "distinct" and "positions" as `complete_tokens` does, and "subwords": "lengths",
    "texts", "distinct" and "positions" once more, of the n-grams of the distinct words. Unknown
    words are distinct by their spelling.
    """

    def __init__(self, vocabulary_path: str | os.PathLike, max_tokens: int, settings: TextSettings):
        """Looks tokens up in `vocabulary_path`; the n-grams are those of `settings`."""
        super().__init__(vocabulary_path, max_tokens)
        self._words = words_by_id(vocabulary_path)
        self._ngrams = (settings.ngram_buckets, settings.min_ngram, settings.max_ngram)
        decisive = f"{self.vocabulary_digest} {self._ngrams}"
        self.vocabulary_digest = hashlib.sha256(decisive.encode()).hexdigest()

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> dict[str, tf.Tensor]:
        """Encodes texts, `[batch]` string, anything at all; see the class."""
        tokens = tokenize(texts, self.max_tokens)
        words, positions = tf.unique(tokens.flat_values)
        distinct = tf.cast(self._table.lookup(words), tf.int32)
        lengths = tf.cast(tokens.row_lengths(), tf.int32)
        return self._complete(tf.gather(distinct, positions), lengths, distinct, positions, words)

    @tf.function(
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32)],
    )
    def complete(self, ids: tf.Tensor, lengths: tf.Tensor) -> dict[str, tf.Tensor]:
        """Adds to token ids the n-grams that the vocabulary knows; unknown words have none.

        Args:
            ids: `[tokens]` int32, of all texts one after the other.
            lengths: `[batch]` int32, how many each text has.
        """
        distinct, positions = tf.unique(ids)
        known = distinct > UNKNOWN_ID
        words = tf.where(known, self._words.lookup(tf.cast(distinct, tf.int64)), "")
        return self._complete(ids, lengths, distinct, positions, words)

    def _complete(self, ids, lengths, distinct, positions, words) -> dict[str, tf.Tensor]:
        found = ngrams(words, *self._ngrams)
        buckets, places = tf.unique(found.flat_values)
        return {
            "ids": ids,
            "lengths": lengths,
            "texts": tf.repeat(tf.range(tf.size(lengths)), lengths),
            "distinct": distinct,
            "positions": positions,
            "subwords": {
                "lengths": tf.cast(found.row_lengths(), tf.int32),
                "texts": tf.cast(found.value_rowids(), tf.int32),
                "distinct": buckets,
                "positions": places,
            },
        }


def text_encoder(
    vocabulary_path: str | os.PathLike, settings: TextSettings, role: str
) -> TextEncoder:
    """Returns the encoder that the towers of a run take.

    Args:
        vocabulary_path: Vocabulary of the role.
        settings: Of the run.
        role: "query" or "document".
    """
    max_tokens = settings.max_tokens(role)
    if settings.ngram_buckets:
        return SubwordTextEncoder(vocabulary_path, max_tokens, settings)
    return TextEncoder(vocabulary_path, max_tokens)
