"""Inverted lists of one byte a value, no smaller than it: they tell who cannot be among the best.

A search adds up bounds of all documents, which is fast and needs little memory, and then computes
the scores of the few documents whose bounds are high from their rows (Broder et al., "Efficient
query evaluation using a two-level retrieval process", CIKM 2003). Ranks and scores are exact.
"""

import dataclasses
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tf_smoothclir.lexical.postings import Postings, SparseRows, are_common, highest, places_among
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import input_error

BLOCK = 1 << 16  # rows, whose numbers within the block take two bytes
_LEVELS = 255
_ROUNDING = 2.0**-12  # more than a sum of 4,096 float32 loses
_ROUNDING_OF_SUMS = 2.0**-22  # more than a sum of the few parts of a score loses


@dataclasses.dataclass(frozen=True)
class PostingBounds(Postings):
    """Postings of bounds, which are bytes times `step`."""

    # `rare` has a row for each word and block of `BLOCK` rows, word by word; its ids are uint16,
    # within the block, and its values uint8, as are `common_values`.

    step: float = 1.0

    @property
    def blocks(self) -> int:
        """Number of blocks of rows."""
        return blocks_of(self.rows)

    @property
    def words(self) -> int:
        """Number of words."""
        return len(self.rare) // self.blocks

    def of_documents(self, words: Sequence[int], weights: Sequence[float]) -> np.ndarray:
        """Bounds of Σ_w n(w, q) impact(w, d), `[documents]` float32; counts are whole."""
        weights = np.asarray(weights, np.int64)
        small = weights.sum() * _LEVELS <= np.iinfo(np.uint16).max
        levels = np.zeros(self.rows, np.uint16 if small else np.uint32)
        self._add_levels(levels, words, weights)
        return np.multiply(self.best(levels), np.float32(self.step), dtype=np.float32)

    def add_to(self, scores: np.ndarray, words: Sequence[int], weights: Sequence[float]) -> None:
        """Adds bounds of the words of one query to `[rows]` float32, each times its weight."""
        self._add_levels(scores, words, np.float32(self.step) * np.asarray(weights, np.float32))

    def _add_levels(self, sums: np.ndarray, words: Sequence[int], weights: np.ndarray) -> None:
        words = np.asarray(words, np.int64)
        try:
            places = places_among(self.common, words)
            is_common = places >= 0
            for place, weight in zip(places[is_common], weights.astype(sums.dtype)[is_common]):
                row = self.common_values[place]
                sums += row if weight == 1 else np.multiply(row, weight, dtype=sums.dtype)
            rare, blocks = words[~is_common], self.blocks
            # Unsigned, what is below 0 is out of bounds as well.
            ends = self.rare.ends[
                (rare[:, None] * blocks + np.arange(blocks + 1)).astype(np.uint64)
            ]
            firsts = BLOCK * np.arange(blocks)
            for of_word, weight in zip(ends, weights.astype(sums.dtype)[~is_common]):
                of_list = slice(of_word[0], of_word[-1])
                ids = np.repeat(firsts, np.diff(of_word)) + self.rare.ids[of_list]
                levels = self.rare.values[of_list].astype(sums.dtype)
                np.add.at(sums, ids, levels if weight == 1 else levels * weight)
        except IndexError as error:
            raise input_error("the inverted lists", str(error), "Build them again") from error


def blocks_of(rows: int) -> int:
    """Number of blocks of so many rows; one for none."""
    return max(1, -(-rows // BLOCK))


def step_of(largest: float) -> float:
    """What a byte counts, if the largest value has the largest byte."""
    return float(np.float32((largest or 1.0) * (1 + _ROUNDING) / _LEVELS))


def filled_bounds(
    chunks: Iterable[sp.csr_array],
    lengths: np.ndarray,
    rows: int,
    step: float,
    allocate: Callable[[str, str, tuple[int, ...]], np.ndarray],
) -> PostingBounds:
    """Bounds by words, of chunks of rows by words; `lengths` of lists are `[words, blocks]`."""
    words, blocks = lengths.shape
    is_common = are_common(lengths.sum(axis=1), rows)
    common = np.flatnonzero(is_common).astype(np.int32)
    places = np.full(words, -1)  # the row of each common word; -1 for rare ones
    places[common] = np.arange(len(common))
    ends = np.append(0, np.cumsum(np.where(is_common[:, None], 0, lengths)))
    rare = SparseRows(
        ends, allocate("ids", "<u2", (ends[-1],)), allocate("bounds", "u1", (ends[-1],))
    )
    common_bounds = allocate("common_bounds", "u1", (len(common), rows))
    # Chunk by chunk, each list grows from its begin: memory holds one chunk at a time.
    next_free, first = ends[:-1].copy(), 0
    for chunk in chunks:
        by_word = chunk.tocsc()
        of_chunk, in_common = (
            np.repeat(numbers, np.diff(by_word.indptr)) for numbers in (np.arange(words), places)
        )
        numbers, levels = first + by_word.indices, np.ceil(by_word.data / step).astype(np.uint8)
        whole = in_common >= 0
        common_bounds[in_common[whole], numbers[whole]] = levels[whole]
        numbers, lists = numbers[~whole], of_chunk[~whole] * blocks + numbers[~whole] // BLOCK
        # List by list, as many places from the next free one on as the chunk has values.
        begins = np.flatnonzero(np.diff(lists, prepend=-1))
        counts = np.diff(begins, append=len(lists))
        targets = np.arange(len(lists)) + np.repeat(next_free[lists[begins]] - begins, counts)
        rare.ids[targets], rare.values[targets] = numbers % BLOCK, levels[~whole]
        next_free[lists[begins]] += counts
        first += chunk.shape[0]
    return PostingBounds(rare, common, common_bounds, step=step)


def may_be_best(
    bounds: np.ndarray,
    scores: Callable[[np.ndarray], np.ndarray],
    depth: int,
    mask: np.ndarray | None = None,
    first: np.ndarray | Sequence[int] = (),
    lost: float = 0.0,
    looked_at: int = 0,
) -> tuple[np.ndarray, float]:
    """Documents that include the best `depth` and all that equal the last; their bounds."""
    # No score exceeds its bound; both are off by no more than `lost` and rounding. The `mask`
    # allows at least `depth`; `first` are likely to be among the best. The scores of `looked_at` or
    # more are computed to rule out others.
    allowed = bounds if mask is None else bounds[mask]
    best = highest(allowed, min(max(depth, looked_at), len(allowed)))
    if mask is not None:
        best = np.flatnonzero(mask)[best]
    if len(first):
        best = np.union1d(best, first)
    lost += _ROUNDING_OF_SUMS * float(np.abs(bounds[best]).max(initial=0))
    least = np.partition(scores(best), -depth)[-depth] - 2 * lost
    may_be_among = bounds >= least
    return np.flatnonzero(may_be_among if mask is None else may_be_among & mask), least
