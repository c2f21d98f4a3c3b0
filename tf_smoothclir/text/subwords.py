"""Character n-grams of words in the graph, hashed (Bojanowski et al. 2017, fastText)."""

import hashlib
import os

import tensorflow as tf

from tf_smoothclir.encoder.word_evidence import MOST_CHARACTERS_OF_WORD
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text import tokens as forms
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, TextEncoder, Tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

_BYTES = 4 * MOST_CHARACTERS_OF_WORD  # always enough for that many characters of UTF-8


def ngrams(
    words: tf.Tensor, buckets: int, shortest: int, longest: int, kind: tf.DType = tf.int32
) -> tf.RaggedTensor:
    """The buckets of the n-grams of "<word>" for `[words]` string, in core TensorFlow ops."""
    # Of Unicode characters, "<" and ">" too; by length, then from left to right. Total: bytes that
    # are not UTF-8 become U+FFFD, and a very long word is cut to `MOST_CHARACTERS_OF_WORD`.
    characters = tf.strings.unicode_split(tf.strings.substr(words, 0, _BYTES), "UTF-8")
    characters = characters[:, :MOST_CHARACTERS_OF_WORD]
    marks = tf.cast(characters.row_lengths() > 0, tf.int64)
    before, after = (
        tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(marks)], mark), marks, validate=False
        )
        for mark in "<>"
    )
    marked = tf.concat([before, characters, after], axis=1)
    of_words = tf.strings.ngrams(marked, tuple(range(shortest, longest + 1)), separator="")
    hashed = tf.strings.to_hash_bucket_fast(of_words.flat_values, buckets)
    return of_words.with_flat_values(tf.cast(hashed, kind))


class SubwordTextEncoder(TextEncoder):
    """A `TextEncoder` whose `SubwordTokens` keep unknown words distinct by their spelling."""

    def __init__(self, vocabulary_path: str | os.PathLike, max_tokens: int, settings: TextSettings):
        super().__init__(vocabulary_path, max_tokens, settings.pretokenized)
        words = forms.vocabulary_entries(vocabulary_path, by_id=True)
        self._words = tf.lookup.StaticHashTable(words, default_value="")
        self.ngrams = (settings.ngram_rows(self.size), settings.min_ngram, settings.max_ngram)
        decisive = f"{self.vocabulary_digest} {self.ngrams}"
        self.vocabulary_digest = hashlib.sha256(decisive.encode()).hexdigest()

    def of_words(self, tokens: tf.RaggedTensor) -> SubwordTokens:
        """Encodes the words of texts, `[batch, (tokens)]` string, as `__call__` does."""
        words, *places = DistinctTokens.of(Tokens.of_ragged(tokens))
        return self._with_ngrams(DistinctTokens(self.ids(words), *places), words)

    @tf.function(
        autograph=False,
        input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None], tf.int32)],
    )
    def complete(self, ids: tf.Tensor, lengths: tf.Tensor) -> SubwordTokens:
        """`[tokens]` ids of `[batch]` lengths, with the n-grams of the known words."""
        tokens = DistinctTokens.of(Tokens.of(ids, lengths))
        known = tokens.distinct > UNKNOWN_ID
        words = tf.where(known, self._words.lookup(tf.cast(tokens.distinct, tf.int64)), "")
        return self._with_ngrams(tokens, words)

    def _with_ngrams(self, tokens: DistinctTokens, words: tf.Tensor) -> SubwordTokens:
        return SubwordTokens(*tokens, Tokens.of_ragged(ngrams(words, *self.ngrams)))


def text_encoder(
    vocabulary_path: str | os.PathLike, settings: TextSettings, role: str
) -> TextEncoder:
    """The encoder for a tower of a run."""
    max_tokens = settings.max_tokens(role)
    if settings.ngram_buckets:
        return SubwordTextEncoder(vocabulary_path, max_tokens, settings)
    return TextEncoder(vocabulary_path, max_tokens, settings.pretokenized)
