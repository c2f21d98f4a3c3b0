"""Unknown words of queries, read as the known words that are spelled most like them.

Queries have words that training never met: names, loan words, rare forms of words, typing errors.
Such a word w is read as the known word t with the largest share of common trigrams, by Dice,

    2 |common trigrams| / (|trigrams of w| + |trigrams of t|),

if that is at least a half, so that `albania` finds `albanien`, and `photgraph` what `photograph`
does. The beginning and the end of a word are characters too. Accents do not count, which capitals
and hasty typing leave out: `αθηνα` is `αθήνα`, `da nang` is `đà nẵng`. Letters of other scripts are
compared as Latin ones: `albania` finds `албания`. If there is no such word, words of Latin letters
are compared with those of others, and the other way round, by `SOUNDS` alone, with a share of 0.6:
`caledonia` finds `קלדוניה`; with the rarer nine tenths of these words, since an unknown word is no
other spelling of `book`. Since words of the same sounds may be others, pairs of letters count too,
with a share of 0.3 and more, where both scripts have vowels: `seoul` finds `сеул`, but `hat` not
`от`. Words of less than four characters, or sounds, have to be the same. Words with digits are
not compared.

A word without a nearest one may have two letters in each other's place, which leaves few trigrams
of short words: `soyn` is read as `sony`.
"""

import re
from collections.abc import Callable, Sequence

import numpy as np

from tf_smoothclir.lexical.joined_words import FREQUENT
from tf_smoothclir.lexical.latin_letters import LETTERS, MARKS, SOUNDS
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.ranges import ranges

LEAST_SHARE, LEAST_OF_SOUNDS, LEAST_OF_PAIRS = map(np.float32, (0.5, 0.6, 0.3))
FEWEST_TRIGRAMS = 4  # of words that may differ in more than accents
BEGIN, END = 0, 1  # code points before and after a word, which no word has
BITS = 21  # of a code point
# Longer words of any script, all of Latin, Greek, Cyrillic and Armenian; in TensorFlow too.
COMPARED = f"[^0-9]{{{FEWEST_TRIGRAMS},}}|[a-z\u00c0-\u058f\u1e00-\u1fff]+"
IN_LATIN, WITHOUT_VOWELS = "[a-z\u00c0-\u024f\u1e00-\u1eff].*", "[\u0590-\u077f].*"
_is_compared, _is_in_latin, _is_without_vowels = (
    re.compile(pattern, re.DOTALL).fullmatch for pattern in (COMPARED, IN_LATIN, WITHOUT_VOWELS)
)


class NearestWords:
    """The nearest words in a vocabulary: `spellings` are tried one after the other."""

    def __init__(self, vocabulary: Sequence[str]):
        """Lists the words by their trigrams."""
        ids = [n for n, word in enumerate(vocabulary) if _is_compared(word)]
        ids = np.array(ids, np.int64)
        ids = ids[ids > UNKNOWN_ID]
        spellings = [Spellings(vocabulary, ids, LETTERS, LEAST_SHARE)]
        in_latin = np.array([_is_in_latin(word) is not None for word in vocabulary])
        if 0 < np.count_nonzero(in_latin[ids]) < len(ids):  # else there are no other letters
            rare = ids[int(FREQUENT * len(ids)) :]  # few others are new names
            spellings.append(Spellings(vocabulary, rare, SOUNDS, LEAST_OF_SOUNDS, in_latin))
        self.spellings = [one for one in spellings if len(one.trigrams.numbers)]

    def id_of(self, word: str) -> int:
        """The id of the nearest word; `NO_WORD` where there is none."""
        if not _is_compared(word):
            return NO_WORD
        found = (spellings.id_of(word) for spellings in self.spellings)
        return next((id_ for id_ in found if id_ != NO_WORD), NO_WORD)


def swapped(word: str, known_id: Callable[[str], int | None]) -> int:
    """The most frequent word that one has with two neighbours swapped; `NO_WORD` without one."""
    if not _is_compared(word) or len(word) < FEWEST_TRIGRAMS:
        return NO_WORD
    others = (f"{word[:n]}{word[n + 1]}{word[n]}{word[n + 2 :]}" for n in range(len(word) - 1))
    return min(filter(None, map(known_id, others)), default=NO_WORD)


class Spellings:
    """Words of a vocabulary by their spelling in some letters.

    Attributes:
        trigrams: Their trigrams in these letters.
        least: The least share of common trigrams.
        in_latin: `[vocabulary]` bool, which words have Latin letters, where those of other words
            are asked for; else None.
        pairs: Their pairs of letters there; else None.
        without_vowels: `[vocabulary]` bool, which words are of scripts that leave vowels out,
            there; else None.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        ids: np.ndarray,
        letters: np.ndarray,
        least: np.float32,
        in_latin: np.ndarray | None = None,
    ):
        """Lists some words of a vocabulary."""
        self.trigrams, self.least = Ngrams(vocabulary, ids, letters, 3), least
        self.in_latin, self.pairs, self.without_vowels = in_latin, None, None
        if in_latin is not None:
            self.pairs = Ngrams(vocabulary, ids, LETTERS, 2)
            self.without_vowels = np.array(list(map(bool, map(_is_without_vowels, vocabulary))))
        self._are_long = self.trigrams.sizes >= FEWEST_TRIGRAMS

    def id_of(self, word: str) -> int:
        """The id of the nearest word of a word that is compared; `NO_WORD` if there is none."""
        shares, number = self.trigrams.shares(word)
        if self.in_latin is not None:
            shares[self.in_latin == (_is_in_latin(word) is not None)] = 0
        is_short, of_pairs = number < FEWEST_TRIGRAMS, np.float32(1)
        if self.pairs is not None and not _is_without_vowels(word):
            of_pairs = np.where(self.without_vowels, of_pairs, self.pairs.shares(word)[0])
        is_like = (shares >= (1 if is_short else self.least)) & (of_pairs >= LEAST_OF_PAIRS)
        totals = np.where(is_like & (is_short | self._are_long), shares + of_pairs, 0)
        best = int(totals.argmax())  # of equal ones the first, which is more frequent
        return best if totals[best] else NO_WORD


class Ngrams:
    """Words of a vocabulary by their n-grams in some letters.

    Attributes:
        letters: `[code points]` int64, the letter that each counts as.
        length: That of n-grams.
        numbers: `[n-grams]` int64, those of the vocabulary, sorted.
        ends: `[n-grams + 1]` int64, where the words that have each one begin and end.
        words: `[entries]` int32, ids of these words.
        sizes: `[vocabulary]` int32, how many different n-grams each word has; 0 where it is not
            listed.
    """

    def __init__(
        self, vocabulary: Sequence[str], ids: np.ndarray, letters: np.ndarray, length: int
    ):
        """Lists some words of a vocabulary."""
        self.letters, self.length = letters, length
        owners, numbers = self._ngrams([vocabulary[id_] for id_ in ids.tolist()])
        owners = ids[owners]
        order = np.argsort(numbers, kind="stable")  # ids stay in order
        owners, numbers = owners[order], numbers[order]
        is_new = np.ones(len(order), bool)  # a word counts once for an n-gram
        is_new[1:] = (np.diff(owners) != 0) | (np.diff(numbers) != 0)
        self.words = owners[is_new].astype(np.int32)
        self.sizes = np.bincount(self.words, minlength=len(vocabulary)).astype(np.int32)
        self.numbers, counts = np.unique(numbers[is_new], return_counts=True)
        self.ends = np.append(0, np.cumsum(counts))

    def shares(self, word: str) -> tuple[np.ndarray, int]:
        """The share of n-grams in common with each word, `[vocabulary]`, and how many one has."""
        _, numbers = self._ngrams([word])
        places = np.searchsorted(self.numbers, numbers).clip(max=len(self.numbers) - 1)
        places = places[self.numbers[places] == numbers]
        begins = self.ends[places]
        entries = self.words[ranges(begins, self.ends[places + 1] - begins)]
        common = np.bincount(entries, minlength=len(self.sizes)).astype(np.float32)
        return 2 * common / np.maximum(1, self.sizes + np.float32(len(numbers))), len(numbers)

    def _ngrams(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The place of the word of each n-gram of words, and the n-grams, int64 numbers."""
        marked = "".join(f"{chr(BEGIN)}{word}{chr(END)}" for word in words)
        codes = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), np.uint32)
        codes = codes.astype(np.int64)
        owners = np.repeat(np.arange(len(words)), [len(word) + 2 for word in words])
        has_letter = codes < len(self.letters)
        codes[has_letter] = self.letters[codes[has_letter]]
        is_mark = (codes >= MARKS[0]) & (codes < MARKS[1])
        owners, codes = owners[~is_mark], codes[~is_mark]
        last = self.length - 1
        first = np.flatnonzero(owners[last:] == owners[: len(owners) - last])
        numbers = np.zeros(len(first), np.int64)
        for place in range(self.length):
            numbers = numbers << BITS | codes[first + place]
        return owners[first], numbers
