"""N-gram buckets and evidence of texts in Python; twins of `text.subwords` and `text.evidence`."""

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.encoder.description import Ngrams
from tf_smoothclir.encoder.tokenizer import has_letters

MOST_CHARACTERS_OF_WORD = 50  # longer tokens are not words, and every n-gram costs a row
_K0, _K1, _K2 = (
    np.uint64(number) for number in (0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F)
)
_CLASSES = ((1, 3), (4, 7), (8, 16), (17, 32), (33, 64))  # of lengths in bytes
_MOST_BYTES = 64  # FarmHash is another one beyond
LEAST_SHARE = 0.5  # of the n-grams of a word, that words of the vocabulary must have


def ngram_buckets(
    words: Sequence[str], buckets: int, shortest: int, longest: int
) -> tuple[np.ndarray, np.ndarray]:
    """The buckets of the n-grams of "<word>", int64, by word, and how many each word has."""
    ngrams, numbers = [], []
    for word in words:
        before = len(ngrams)
        ngrams += marked_ngrams(word, shortest, longest)
        numbers.append(len(ngrams) - before)
    hashes = fingerprints([ngram.encode() for ngram in ngrams])
    return (hashes % np.uint64(buckets)).astype(np.int64), np.array(numbers, np.int64)


def marked_word(word: str) -> str:
    """ "<word>", from whose characters n-grams are made."""
    return f"<{word[:MOST_CHARACTERS_OF_WORD]}>"


def marked_ngrams(word: str, shortest: int, longest: int) -> Iterator[str]:
    """Yields the n-grams of "<word>"; arguments as for `ngram_buckets`."""
    marked = marked_word(word)
    for length in range(shortest, longest + 1):
        for begin in range(len(marked) - length + 1):
            yield marked[begin : begin + length]


def fingerprints(texts: Sequence[bytes]) -> np.ndarray:
    """The Fingerprint64 of texts of at most 64 bytes, `[texts]` uint64."""
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    begins = np.cumsum(lengths) - lengths
    data = np.frombuffer(b"".join(texts) + bytes(_MOST_BYTES), np.uint8)
    hashes = np.full(len(texts), _K2)  # that of an empty text
    for (shortest, longest), function in zip(_CLASSES, _FUNCTIONS):
        rows = np.flatnonzero((lengths >= shortest) & (lengths <= longest))
        if rows.size:
            hashes[rows] = function(_Texts(data, begins[rows], lengths[rows]))
    return hashes


class _Texts:
    """Texts of one class of lengths: `data` and where in it each one begins."""

    def __init__(self, data: np.ndarray, begins: np.ndarray, lengths: np.ndarray):
        self._data, self._begins, self._lengths = data, begins, lengths
        self.lengths = lengths.astype(np.uint64)
        self.factors = _K2 + self.lengths * np.uint64(2)

    def number(self, place: int, size: int = 8) -> np.ndarray:
        """`size` bytes as a number; a negative place counts from the end of each text."""
        begins = self._begins + place + (self._lengths if place < 0 else 0)
        return overlapping(self._data, size)[begins].astype(np.uint64, copy=False)

    def middle(self) -> np.ndarray:
        """The byte in the middle of each text."""
        return self._data[self._begins + self._lengths // 2].astype(np.uint64)


def overlapping(data: np.ndarray, size: int) -> np.ndarray:
    """The number of `size` bytes that begins at each byte, a view."""
    return np.ndarray(len(data) - size + 1, f"<u{size}", data, strides=1)


def _rotated(numbers: np.ndarray, bits: int) -> np.ndarray:
    return (numbers >> np.uint64(bits)) | (numbers << np.uint64(64 - bits))


def _mixed(numbers: np.ndarray) -> np.ndarray:
    return numbers ^ (numbers >> np.uint64(47))


def _hash_16(u: np.ndarray, v: np.ndarray, factors: np.ndarray) -> np.ndarray:
    return _mixed((v ^ _mixed((u ^ v) * factors)) * factors) * factors


def _up_to_3(texts: _Texts) -> np.ndarray:
    y = texts.number(0, 1) + (texts.middle() << np.uint64(8))
    z = texts.lengths + (texts.number(-1, 1) << np.uint64(2))
    return _mixed((y * _K2) ^ (z * _K0)) * _K2


def _up_to_7(texts: _Texts) -> np.ndarray:
    a = texts.lengths + (texts.number(0, 4) << np.uint64(3))
    return _hash_16(a, texts.number(-4, 4), texts.factors)


def _up_to_16(texts: _Texts) -> np.ndarray:
    a, b = texts.number(0) + _K2, texts.number(-8)
    c = _rotated(b, 37) * texts.factors + a
    d = (_rotated(a, 25) + b) * texts.factors
    return _hash_16(c, d, texts.factors)


def _up_to_32(texts: _Texts) -> np.ndarray:
    a, b = texts.number(0) * _K1, texts.number(8)
    c, d = texts.number(-8) * texts.factors, texts.number(-16) * _K2
    first = _rotated(a + b, 43) + _rotated(c, 30) + d
    return _hash_16(first, a + _rotated(b + _K2, 18) + c, texts.factors)


def _up_to_64(texts: _Texts) -> np.ndarray:
    factors = texts.factors
    a, b = texts.number(0) * _K2, texts.number(8)
    c, d = texts.number(-8) * factors, texts.number(-16) * _K2
    y = _rotated(a + b, 43) + _rotated(c, 30) + d
    z = _hash_16(y, a + _rotated(b + _K2, 18) + c, factors)
    e, f = texts.number(16) * factors, texts.number(24)
    g = (y + texts.number(-32)) * factors
    h = (z + texts.number(-24)) * factors
    first = _rotated(e + f, 43) + _rotated(g, 30) + h
    return _hash_16(first, e + _rotated(f + a, 18) + g, factors)


_FUNCTIONS = (_up_to_3, _up_to_7, _up_to_16, _up_to_32, _up_to_64)


class WordsRead(NamedTuple):
    """Whether a text has known words, or half of the n-grams of one, and its unknown words."""

    known: bool
    resembling: bool
    unknown: tuple[str, ...]
    cut: int = 0  # tokens at its end that are not read


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


# What people and JSON call them.
NOTHING, NGRAMS, SPELLING, WORDS = range(4)
NAMES = ("nothing", "n-grams", "spelling", "words")
