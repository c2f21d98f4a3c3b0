"""Unknown words of queries, read as the known words that are spelled most like them.

Queries have words that training never met: names, loan words, rare forms of words, typing errors.
Such a word w is read as the known word t with the largest share of common trigrams, by Dice,

    2 |common trigrams| / (|trigrams of w| + |trigrams of t|),

if that is at least a half, so that `albania` finds `albanien`, and `photgraph` what `photograph`
does. The beginning and the end of a word are characters too. Accents do not count, which capitals
and hasty typing leave out: `αθηνα` is `αθήνα`, `da nang` is `đà nẵng`. Letters of other scripts are
compared as Latin ones: `albania` finds `албания`. If there is no such word, words of Latin letters
are compared with those of others, and the other way round, by `SOUNDS` alone, with a share of 0.65:
`caledonia` finds `קלדוניה`; with the rarer nine tenths of a vocabulary, since an unknown word is no
other spelling of `book`. Words of less than four characters are only found by the first. Digits do
not count, and words that have some are not found: `covid19` finds `covid`, but `es2016` not
`es2015`.

The least share and the length were the same within chance from 0.4 to 0.6 and from 3 to 5, and so
were longer n-grams, on validation and test queries of sets of eight languages. Of sounds, a least
share of 0.8 found fewer names in eleven languages, and so did all words of the vocabulary.
"""

import functools
import re
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.lexical.joined_words import FREQUENT
from tf_smoothclir.lexical.latin_letters import LETTERS, MARKS, SOUNDS
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.ranges import ranges

LEAST_SHARE, LEAST_OF_SOUNDS = 0.5, 0.65
FEWEST_TRIGRAMS = 4  # of words that may differ in more than accents
LARGE = np.int32(1 << 30)  # stands for the sizes of others, so that they have no share
BEGIN, END = 0, 1  # code points before and after a word, which no word has
BITS = 21  # of a code point
# Longer words of any script, all of Latin, Greek, Cyrillic and Armenian; in TensorFlow too.
COMPARED = f"([0-9]*[^0-9]){{{FEWEST_TRIGRAMS},}}[0-9]*|[a-z\u00c0-\u058f\u1e00-\u1fff]+"
IN_LATIN = "[a-z\u00c0-\u024f\u1e00-\u1eff].*"
_MOST_REMEMBERED = 1 << 16
_is_compared, _digit = re.compile(COMPARED).fullmatch, re.compile("[0-9]").search
_is_in_latin = re.compile(IN_LATIN, re.DOTALL).fullmatch


class NearestWords:
    """The nearest words in a vocabulary: `spellings` are tried one after the other."""

    def __init__(self, vocabulary: Sequence[str]):
        """Lists the words by their trigrams."""
        ids = [n for n, word in enumerate(vocabulary) if _is_compared(word) and not _digit(word)]
        ids = np.array(ids, np.int64)
        ids = ids[ids > UNKNOWN_ID]
        in_latin = np.array([_is_in_latin(word) is not None for word in vocabulary])
        spellings = [Spellings(vocabulary, ids, LETTERS, LEAST_SHARE)]
        if 0 < np.count_nonzero(in_latin[ids]) < len(ids):  # else there are no other letters
            rare = ids[ids >= FREQUENT * len(vocabulary)]  # few others are new names
            spellings.append(Spellings(vocabulary, rare, SOUNDS, LEAST_OF_SOUNDS, in_latin))
        self.spellings = [one for one in spellings if len(one.trigrams)]
        self.id_of = functools.lru_cache(_MOST_REMEMBERED)(self._id_of)

    def _id_of(self, word: str) -> int:
        """The id of the nearest word; `NO_WORD` where there is none."""
        if not _is_compared(word):
            return NO_WORD
        found = (spellings.id_of(word) for spellings in self.spellings)
        return next((id_ for id_ in found if id_ != NO_WORD), NO_WORD)


class Spellings:
    """Words of a vocabulary by their trigrams in some letters.

    Attributes:
        letters: `[code points]` int64, the letter that each counts as.
        least: The least share of common trigrams.
        in_latin: `[vocabulary]` bool, which words have Latin letters, where those of other words
            are asked for; else None.
        trigrams: `[trigrams]` int64, those of the vocabulary, sorted, as numbers.
        ends: `[trigrams + 1]` int64, where the words that have each one begin and end.
        words: `[entries]` int32, ids of these words.
        sizes: `[vocabulary]` int32, how many different trigrams each word has; 0 where it is not
            compared.
    """

    def __init__(
        self,
        vocabulary: Sequence[str],
        ids: np.ndarray,
        letters: np.ndarray,
        least: float,
        in_latin: np.ndarray | None = None,
    ):
        """Lists some words of a vocabulary by their trigrams."""
        self.letters, self.least, self.in_latin = letters, np.float32(least), in_latin
        owners, trigrams = self._trigrams([vocabulary[id_] for id_ in ids.tolist()])
        owners = ids[owners]
        order = np.argsort(trigrams, kind="stable")  # ids stay in order
        owners, trigrams = owners[order], trigrams[order]
        is_new = np.ones(len(order), bool)  # a word counts once for a trigram
        is_new[1:] = (np.diff(owners) != 0) | (np.diff(trigrams) != 0)
        self.words = owners[is_new].astype(np.int32)
        self.sizes = np.bincount(self.words, minlength=len(vocabulary)).astype(np.int32)
        self._sizes_of_long = np.where(self.sizes < FEWEST_TRIGRAMS, LARGE, self.sizes)
        self.trigrams, numbers = np.unique(trigrams[is_new], return_counts=True)
        self.ends = np.append(0, np.cumsum(numbers))

    def id_of(self, word: str) -> int:
        """The id of the nearest word of a word that is compared; `NO_WORD` if there is none."""
        _, trigrams = self._trigrams([word])
        if not len(trigrams):  # an accent alone, or vowels
            return NO_WORD
        places = np.searchsorted(self.trigrams, trigrams).clip(max=len(self.trigrams) - 1)
        places = places[self.trigrams[places] == trigrams]
        begins = self.ends[places]
        entries = self.words[ranges(begins, self.ends[places + 1] - begins)]
        common = np.bincount(entries, minlength=len(self.sizes))
        if self.in_latin is not None:
            common[self.in_latin == (_is_in_latin(word) is not None)] = 0
        is_short = len(trigrams) < FEWEST_TRIGRAMS
        sizes = self.sizes if is_short else self._sizes_of_long
        shares = 2 * common.astype(np.float32) / (sizes + np.float32(len(trigrams)))
        best = int(shares.argmax())  # of equal ones the first, which is more frequent
        return best if shares[best] >= (1 if is_short else self.least) else NO_WORD

    def _trigrams(self, words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The place of the word of each trigram of words, and the trigrams, int64 numbers."""
        marked = "".join(f"{chr(BEGIN)}{word}{chr(END)}" for word in words)
        codes = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), np.uint32)
        codes = codes.astype(np.int64)
        owners = np.repeat(np.arange(len(words)), [len(word) + 2 for word in words])
        has_letter = codes < len(self.letters)
        codes[has_letter] = self.letters[codes[has_letter]]
        is_mark = (codes >= MARKS[0]) & (codes < MARKS[1])
        owners, codes = owners[~is_mark], codes[~is_mark]
        first = np.flatnonzero(owners[2:] == owners[:-2])
        numbers = codes[first] << 2 * BITS | codes[first + 1] << BITS | codes[first + 2]
        return owners[first], numbers
