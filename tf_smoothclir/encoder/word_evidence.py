"""Evidence of texts in a tower's vocabulary, in plain Python; `text/evidence.py` is its twin."""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from typing import NamedTuple

from tf_smoothclir.encoder.description import Ngrams
from tf_smoothclir.encoder.ngram_buckets import marked_ngrams, marked_word
from tf_smoothclir.encoder.tokenizer import has_letters

LEAST_SHARE = 0.5  # of the n-grams of a word, that words of the vocabulary must have


class WordsRead(NamedTuple):
    """Known and unknown words of a text; punctuation does not count.

    Attributes:
        known: Whether a word of it is in the vocabulary.
        resembling: Whether none is, but one has half of its n-grams from words that are.
        unknown: Its words that are not in the vocabulary.
    """

    known: bool
    resembling: bool
    unknown: tuple[str, ...]


class WordEvidence:
    """Says what a tower knows of texts by its vocabulary and, if it has some, by its n-grams."""

    def __init__(self, words: Collection[str], ngrams: Ngrams | None):
        """Takes the vocabulary, without padding and unknown, and how long n-grams are."""
        self._words, self._ngrams = words, ngrams

    def of_tokens(self, tokens: Iterable[str]) -> WordsRead:
        """Returns the evidence of a text with these tokens."""
        words = list(filter(has_letters, tokens))
        unknown = tuple(word for word in words if word not in self._words)
        known = len(unknown) < len(words)
        return WordsRead(known, not known and any(map(self._resembles, unknown)), unknown)

    def _resembles(self, word: str) -> bool:
        if self._ngrams is None:
            return False
        ngrams = list(marked_ngrams(word, self._ngrams.shortest, self._ngrams.longest))
        there = sum(ngram in self._all_marked for ngram in ngrams)
        return bool(ngrams) and there >= LEAST_SHARE * len(ngrams)

    @functools.cached_property
    def _all_marked(self) -> str:
        """All words in one text: to look for a few n-grams there is faster than to list them."""
        return "\n".join(map(marked_word, self._words))
