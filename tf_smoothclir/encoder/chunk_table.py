"""A table of what stands between spaces, and of its tokens, for all texts of a batch at once.

Why it is here: to split texts and look up each of their words in Python takes four times as long
as all else that an encoder does; `python -m benchmarks.encoding` measures it. Here bytes are hashed
and hashes looked up by a few operations on arrays.
"""

import itertools
import threading
from collections.abc import Mapping, Sequence

import numpy as np

from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.encoder.word_evidence import overlapping
from tf_smoothclir.utils.ranges import ranges

_SPACE, _NONE = ord(" "), -1
_LEAST_SLOTS, _SLOTS_PER_CHUNK = 1 << 12, 4
MOST_BYTES = 64  # of a chunk that is hashed in arrays
_BLOCK = 8  # bytes
_MASKS = np.array([(1 << 8 * length) - 1 for length in range(_BLOCK + 1)], np.uint64)
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # odd, so that no two numbers have the same product
_EITHER = "surrogatepass"  # strings may have halves of surrogate pairs


class ChunkTable:
    """The tokens of each different chunk: what stands between two plain spaces.

    No token reaches over a plain space, so a chunk has its tokens whatever is around it. Threads
    may share a table. A copy of it, such as for another process, is empty.

    Attributes:
        words: The different tokens so far.
    """

    # Chunks are told apart by 64 bits of a hash: that two of a million are taken for one is less
    # likely than 1 in 10 million. `_slots`, a power of two, is a hash table with the numbers of
    # chunks: that of a chunk is in the place that its hash says, or in the first free one after it.

    def __init__(self, ids: Mapping[str, int], pretokenized: bool):
        """Takes the id of every word."""
        self._id_of, self._pretokenized = ids, pretokenized
        self._numbers: dict[str, int] = {}
        self.words: list[str] = []
        # Chunk n has the tokens from the n-th end to the next one.
        self._ids, self._tokens, self._ends = (_Numbers(np.int64) for _ in range(3))
        self._ends.extend([0])
        self._hashes = _Numbers(np.uint64)
        self._slots = np.full(_LEAST_SLOTS, _NONE, np.int32)
        self._lock = threading.Lock()

    def __reduce__(self):
        return ChunkTable, (self._id_of, self._pretokenized)

    @property
    def size(self) -> int:
        """The number of chunks, and of their tokens: a text without spaces is one chunk."""
        return len(self._hashes) + len(self._tokens)

    @property
    def ids(self) -> np.ndarray:
        """`[words]` int64, the ids of the different tokens, and numbers without meaning."""
        return self._ids.values

    def read(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """`[tokens]`, the place of each token in `words`; `[texts]`, where those of each end."""
        encoded = [text.encode("utf-8", _EITHER) for text in texts]
        # A space after each text, and what the last block may reach over it.
        data = np.frombuffer(b" ".join([*encoded, bytes(_BLOCK)]), np.uint8)
        ends = np.flatnonzero(data == _SPACE)
        begins = np.concatenate([[0], ends + 1])[: len(ends)]
        with self._lock:
            chunks = self._chunks(data, begins, ends - begins)
        begins = self._ends.values.take(chunks)  # faster than in brackets
        sizes = self._ends.values.take(chunks + 1) - begins
        tokens = self._tokens.values.take(ranges(begins, sizes))
        lengths = np.fromiter(map(len, encoded), np.int64, len(encoded))
        last = np.searchsorted(ends, np.cumsum(lengths + 1) - 1)  # chunk of each text
        return tokens, np.cumsum(sizes)[last]

    def _chunks(self, data: np.ndarray, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The number of each chunk; new ones are added."""
        hashes, content = hashes_of(data, begins, lengths), data.tobytes()
        for row in np.flatnonzero(lengths > MOST_BYTES):
            hashes[row] = np.int64(hash(content[begins[row] : begins[row] + lengths[row]]))
        numbers = self._find(hashes)
        new = np.flatnonzero(numbers == _NONE)
        if new.size:
            different, first = np.unique(hashes[new], return_index=True)
            places = zip(begins[new[first]].tolist(), lengths[new[first]].tolist())
            chunks = b" ".join(content[begin : begin + length] for begin, length in places)
            self._add(different, chunks.decode("utf-8", _EITHER))
            numbers[new] = self._find(hashes[new])
        return numbers

    def _places(self, hashes: np.ndarray) -> np.ndarray:
        """The slot where the search for each hash begins."""
        return (hashes & np.uint64(len(self._slots) - 1)).view(np.int64)

    def _find(self, hashes: np.ndarray) -> np.ndarray:
        """The numbers of chunks by their hashes; `_NONE` where there is no such chunk."""
        places = self._places(hashes)
        numbers = self._slots.take(places)
        # `_NONE` takes the last value, and is the answer whatever that is.
        rows = np.flatnonzero(self._hashes.values.take(numbers) != hashes)
        while (rows := rows[numbers[rows] != _NONE]).size:
            places[rows] = (places[rows] + 1) % len(self._slots)
            numbers[rows] = self._slots[places[rows]]
            rows = rows[self._hashes.values[numbers[rows]] != hashes[rows]]
        return numbers

    def _add(self, hashes: np.ndarray, chunks: str) -> None:
        """Adds new chunks, all different, with a space between two of them."""
        # All are split at once, with a word between them that none of them has.
        for between in map("end".__mul__, itertools.count(1)):
            tokens = tokens_of(chunks.replace(" ", f" {between} "), self._pretokenized)
            if tokens.count(between) == len(hashes) - 1:
                break
        ends = [place for place, word in enumerate([*tokens, between]) if word == between]
        # Before each end stand the words between chunks, too.
        self._ends.extend(len(self._tokens) + np.array(ends) - np.arange(len(ends)))
        self._tokens.extend([self._number(word) for word in tokens if word != between])
        before = len(self._hashes)
        self._hashes.extend(hashes)
        number = len(self._hashes)
        new = np.arange(before, number)
        self._ids.extend([self._id_of[word] for word in self.words[len(self._ids) :]])
        if number * _SLOTS_PER_CHUNK > len(self._slots):
            bits = (number * _SLOTS_PER_CHUNK).bit_length()
            self._slots, new = np.full(1 << bits, _NONE, np.int32), np.arange(number)
        new = new[::-1]  # first ones last, to have their places: frequent chunks come early
        places = self._places(self._hashes.values[new])
        while new.size:
            free = self._slots[places] == _NONE
            self._slots[places[free]] = new[free]  # of several at one place, the last
            left = self._slots[places] != new
            new, places = new[left], (places[left] + 1) % len(self._slots)

    def _number(self, word: str) -> int:
        """The place of a word in `words`."""
        number = self._numbers.setdefault(word, len(self.words))
        if number == len(self.words):
            self.words.append(word)
        return number


def hashes_of(data: np.ndarray, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """`[chunks]` uint64, of the first `MOST_BYTES` bytes and the length of each chunk."""
    blocks, hashes, place = overlapping(data, _BLOCK), lengths.astype(np.uint64) * _FACTOR, 0
    rows = np.flatnonzero(lengths)
    while rows.size and place < MOST_BYTES:
        left = lengths[rows] - place
        numbers = blocks[begins[rows] + place] & _MASKS.take(left, mode="clip")
        mixed = (hashes[rows] ^ numbers) * _FACTOR
        hashes[rows] = mixed ^ (mixed >> np.uint64(32))  # low bits follow high ones too
        place, rows = place + _BLOCK, rows[left > _BLOCK]
    return hashes


class _Numbers:
    """Numbers that become more: `values` has room for twice as many, so that few are copied."""

    def __init__(self, dtype: type):
        self._size, self.values = 0, np.zeros(_LEAST_SLOTS, dtype)

    def __len__(self) -> int:
        return self._size

    def extend(self, numbers: Sequence[int] | np.ndarray) -> None:
        """Adds numbers at the end."""
        before, self._size = self._size, self._size + len(numbers)
        if self._size > len(self.values):
            self.values = np.resize(self.values, 2 * self._size)
        self.values[before : self._size] = numbers
