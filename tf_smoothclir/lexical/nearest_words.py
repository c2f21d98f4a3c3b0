"""Unknown words of queries, read as the known words that are spelled most like them.

Queries have words that training never met: names, loan words, rare forms of words, typing errors.
Such a word w is read as the known word t with the largest share of common trigrams, by Dice,

    2 |common trigrams| / (|trigrams of w| + |trigrams of t|),

if that is at least a half, so that `albania` finds `albanien`, and `photgraph` what `photograph`
does. The beginning and the end of a word are characters too. Accents do not count, which capitals
and hasty typing leave out: `αθηνα` is `αθήνα`, `da nang` is `đà nẵng`. Words of less than four
characters are only found by this, and words with digits not at all: `es2016` is not `es2015`.

The least share and the length were the same within chance from 0.4 to 0.6 and from 3 to 5, and so
were longer n-grams, on validation and test queries of sets of eight languages.
"""

import functools
import re
import unicodedata
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.ranges import ranges

LEAST_SHARE = 0.5
FEWEST_TRIGRAMS = 4  # of words that may differ in more than accents
LARGE = np.int32(1 << 30)  # stands for the sizes of others, so that they have no share
BEGIN, END = 0, 1  # code points before and after a word, which no word has
BITS = 21  # of a code point
# Longer words of any script, all of Latin, Greek, Cyrillic and Armenian; in TensorFlow too.
COMPARED = f"[^0-9]{{{FEWEST_TRIGRAMS},}}|[a-z\u00c0-\u058f\u1e00-\u1fff]+"
MARKS = 0x300, 0x370  # accents that have no character together with their letter
# Code point -> that of the letter without accents; of the scripts that have some.
LETTERS = np.array([ord(unicodedata.normalize("NFD", chr(code))[0]) for code in range(0x2000)])
LETTERS[[ord(letter) for letter in "đłø"]] = [ord(letter) for letter in "dlo"]
_MOST_REMEMBERED = 1 << 16
_is_compared = re.compile(COMPARED).fullmatch


class NearestWords:
    """The nearest words in a vocabulary.

    Attributes:
        trigrams: `[trigrams]` int64, those of the vocabulary, sorted, as numbers.
        ends: `[trigrams + 1]` int64, where the words that have each one begin and end.
        words: `[entries]` int32, ids of these words.
        sizes: `[vocabulary]` int32, how many different trigrams each word has; 0 where it is not
            compared.
    """

    def __init__(self, vocabulary: Sequence[str]):
        """Lists the words by their trigrams."""
        ids = [id_ for id_, word in enumerate(vocabulary) if _is_compared(word)]
        ids = np.array(ids, np.int64)
        ids = ids[ids > UNKNOWN_ID]
        owners, trigrams = _trigrams([vocabulary[id_] for id_ in ids.tolist()])
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
        self.id_of = functools.lru_cache(_MOST_REMEMBERED)(self._id_of)

    def _id_of(self, word: str) -> int:
        """The id of the nearest word; `NO_WORD` where there is none."""
        if not len(self.trigrams) or not _is_compared(word):
            return NO_WORD
        _, trigrams = _trigrams([word])
        if not len(trigrams):  # an accent alone
            return NO_WORD
        places = np.searchsorted(self.trigrams, trigrams).clip(max=len(self.trigrams) - 1)
        places = places[self.trigrams[places] == trigrams]
        begins = self.ends[places]
        entries = self.words[ranges(begins, self.ends[places + 1] - begins)]
        common = np.bincount(entries, minlength=len(self.sizes))
        is_short = len(trigrams) < FEWEST_TRIGRAMS
        sizes = self.sizes if is_short else self._sizes_of_long
        shares = 2 * common.astype(np.float32) / (sizes + np.float32(len(trigrams)))
        best = int(shares.argmax())  # of equal ones the first, which is more frequent
        return best if shares[best] >= (1 if is_short else LEAST_SHARE) else NO_WORD


def _trigrams(words: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The trigrams of words, `[trigrams]` int64 numbers, and the place of the word of each."""
    marked = "".join(f"{chr(BEGIN)}{word}{chr(END)}" for word in words)
    codes = np.frombuffer(marked.encode("utf-32-le", "surrogatepass"), np.uint32).astype(np.int64)
    owners = np.repeat(np.arange(len(words)), [len(word) + 2 for word in words])
    is_mark = (codes >= MARKS[0]) & (codes < MARKS[1])
    owners, codes = owners[~is_mark], codes[~is_mark]
    is_letter = codes < len(LETTERS)
    codes[is_letter] = LETTERS[codes[is_letter]]
    first = np.flatnonzero(owners[2:] == owners[:-2])
    numbers = codes[first] << 2 * BITS | codes[first + 1] << BITS | codes[first + 2]
    return owners[first], numbers
