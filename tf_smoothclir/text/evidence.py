"""Evidence of a query in a model: its words, their spelling, their n-grams, or nothing.

A query without any known word would still get the documents that happen to score highest. So
searches ask first, and answer with no documents where there is no evidence. Punctuation is none.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_smoothclir.encoder.word_evidence import LEAST_SHARE, NGRAMS, NOTHING, SPELLING, WORDS
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.text.subwords import ngrams
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.parallel import in_batches

_HASHES = (1 << 63) - 1  # so many that no two n-grams of a vocabulary share one
WORDS_AT_ONCE = 20_000
WORD = r".*[\p{L}\p{N}].*"


class Evidence(NamedTuple):
    """Evidence of some texts."""

    levels: tf.Tensor  # `[batch]` int32, the best evidence that a word of each text gives
    unknown: tf.Tensor  # `[batch]` string, words in no vocabulary, spaces between them


def evidence_of(tokens: tf.RaggedTensor, levels: tf.Tensor) -> Evidence:
    """Sums up `[tokens]` int32 levels of words; what punctuation has does not count."""
    is_word = tf.strings.regex_full_match(tokens.flat_values, WORD)
    rows, batch = tokens.value_rowids(), tokens.nrows()
    counted = tf.where(is_word, levels, NOTHING)
    best = tf.maximum(tf.math.unsorted_segment_max(counted, rows, batch), NOTHING)
    unknown = is_word & (levels < SPELLING)
    joined = tf.strings.unsorted_segment_join(
        tf.boolean_mask(tokens.flat_values, unknown),
        tf.boolean_mask(rows, unknown),
        tf.cast(batch, tf.int32),
        separator=" ",
    )
    return Evidence(best, joined)


class NgramSet(tf.Module):
    """The character n-grams of the words of a vocabulary."""

    def __init__(self, words: list[str], settings: TextSettings):
        super().__init__(name="ngram_set")
        self._lengths = settings.min_ngram, settings.max_ngram
        parts = [np.zeros(0, np.int64)]
        for some in in_batches(words, WORDS_AT_ONCE):
            parts.append(np.unique(self._hashes(tf.constant(some)).flat_values))
        self._known = tf.Variable(np.unique(np.concatenate(parts)), trainable=False)

    def resembles(self, words: tf.Tensor) -> tf.Tensor:
        """Mask of words that have half of their n-grams from known words, `[words]` bool."""
        hashes = self._hashes(words)
        places = tf.searchsorted(self._known, hashes.flat_values)
        places = tf.minimum(places, tf.size(self._known) - 1)
        known = tf.cast(tf.equal(tf.gather(self._known, places), hashes.flat_values), tf.float32)
        counts = tf.math.unsorted_segment_sum(known, hashes.value_rowids(), hashes.nrows())
        lengths = tf.cast(hashes.row_lengths(), tf.float32)
        return (counts >= LEAST_SHARE * lengths) & (lengths > 0)

    def _hashes(self, words: tf.Tensor) -> tf.RaggedTensor:
        return ngrams(words, _HASHES, *self._lengths, kind=tf.int64)


class WordEvidence(tf.Module):
    """Evidence of texts, in the graph: words of a tower's vocabulary, or n-grams of them."""

    def __init__(self, encoder: TextEncoder, ngrams_known: NgramSet | None = None):
        super().__init__(name="evidence")
        self._encoder, self._ngrams = encoder, ngrams_known

    def __call__(self, texts: tf.Tensor) -> Evidence:
        """Evidence of texts, `[batch]` string, any bytes."""
        return self.of_words(self._encoder.words(texts))

    def of_words(self, tokens: tf.RaggedTensor) -> Evidence:
        """Evidence of texts that are split into words, `[batch, (tokens)]` string."""
        known = self._encoder.ids(tokens.flat_values) > UNKNOWN_ID
        levels = tf.where(known, WORDS, NOTHING)
        if self._ngrams is not None:  # only of unknown words: the others have better evidence
            others = tf.where(~known)
            resembling = self._ngrams.resembles(tf.gather_nd(tokens.flat_values, others))
            of_others = tf.where(resembling, NGRAMS, NOTHING)
            levels = tf.tensor_scatter_nd_update(levels, others, of_others)
        return evidence_of(tokens, levels)


def word_evidence(
    vocabulary: Sequence[str], encoder: TextEncoder, settings: TextSettings
) -> WordEvidence:
    """The `WordEvidence` of a tower with a vocabulary."""
    if not settings.ngram_buckets:
        return WordEvidence(encoder)
    words = list(vocabulary[UNKNOWN_ID + 1 :])
    return WordEvidence(encoder, NgramSet(words, settings) if words else None)
