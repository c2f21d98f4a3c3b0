"""Inverted lists: for each word the documents that have it, and by how much."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable

import numpy as np

from tf_smoothclir.lexical.sparse_tables import ends_of, kept_entries
from tf_smoothclir.protocols.scorer import ScoreRows, query_chunks
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.ranges import ranges

# A word that more than this share of the documents have is common. A few hundred words are, but
# nearly all of the work of a query is theirs, and adding up whole rows is ten times as fast.
COMMON = 0.25
_ROWS = 1 << 12  # whose sums are computed at once
_MOST_IN_TABLE = 1 << 22  # the largest of some words, to look all ids up in a table
_GROUP = 64  # scores of which one may be among the highest


@dataclasses.dataclass(frozen=True)
class Rows(abc.ABC):
    """The rows of a sparse matrix, wherever they are."""

    ends: np.ndarray  # `[rows + 1]` int64, where each row begins, and the last ends

    def __len__(self) -> int:
        return len(self.ends) - 1

    def entries(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Ids and values of some rows, one row after the other, and how many each row has."""
        begins = self.ends[rows]
        lengths = self.ends[1:][rows] - begins
        return *self._parts(begins, lengths), lengths

    @abc.abstractmethod
    def _parts(self, begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Ids and values of some ranges of entries."""

    def sums(
        self, rows: np.ndarray, words: np.ndarray, weights: np.ndarray, common: np.ndarray
    ) -> np.ndarray:
        """Σ_w weight_w row[w] of some rows: the float32 numbers of the `Postings` of all rows."""
        # `words`, columns, are ascending; the `common` words of the postings are added up first.
        if not len(rows):
            return np.zeros(0, np.float32)
        place_of = _places(words)
        sums, is_rare = np.zeros((2, len(rows)), np.float32), places_among(common, words) < 0
        for first in range(0, len(rows), _ROWS):
            ids, values, lengths = self.entries(rows[first : first + _ROWS])
            places_of = place_of(ids)
            known = np.flatnonzero(places_of)
            known = known[np.argsort(places_of[known], kind="stable")]  # added up in order
            word = places_of[known] - 1
            row = first + np.repeat(np.arange(len(lengths)), lengths)[known]
            added = values[known] * weights[word]
            np.add.at(sums, (is_rare[word].astype(np.intp), row), added)
        return sums[0] + sums[1]


def _places(words: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """What finds ids among ascending words: their places, from 1; 0 for all others."""
    if not len(words) or words[-1] > _MOST_IN_TABLE:
        ends = np.append(words, -1)  # no id

        def searched(ids):
            places = np.searchsorted(words, ids)
            return np.where(ends[places] == ids, places + 1, 0)

        return searched
    table = np.zeros(words[-1] + 2, np.int32)
    table[words] = np.arange(1, len(words) + 1)
    return lambda ids: table[np.minimum(ids, len(table) - 1)]


@dataclasses.dataclass(frozen=True)
class SparseRows(Rows):
    """Rows in memory, or memory-mapped."""

    ids: np.ndarray  # `[values]` int32, the column of each value
    values: np.ndarray  # `[values]` float32

    @classmethod
    def of(cls, matrix: sp.csr_array) -> SparseRows:
        """Takes `[rows, columns]` of float32."""
        indices = matrix.indices.astype(np.int32, copy=False)
        return cls(matrix.indptr.astype(np.int64, copy=False), indices, matrix.data)

    def _parts(self, begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = ranges(begins, lengths)
        return self.ids[places], self.values[places]


@dataclasses.dataclass(frozen=True)
class Postings:
    """Sums of a few long columns of a sparse matrix: a query asks for few of all words."""

    rare: SparseRows  # for each word, its rows in ascending order; empty for common words
    common: np.ndarray  # `[common]` int32, ascending, the words whose rows are stored whole
    common_values: np.ndarray  # `[common, rows]` float32, these rows
    firsts: np.ndarray | None = None  # `[documents + 1]` int64, where passages of each begin

    @classmethod
    def of(cls, impacts: sp.csr_array, firsts: np.ndarray | None = None) -> Postings:
        """Takes `[rows, words]` float32, what a word adds to the score of a row."""
        by_word = impacts.tocsc()
        del impacts  # so that there is no more of it than the lists at once, if nobody has it
        lengths = np.diff(by_word.indptr)
        is_common = are_common(lengths, by_word.shape[0])
        in_rare = np.repeat(~is_common, lengths)
        ends = np.append(0, np.cumsum(np.where(is_common, 0, lengths)))
        common = np.flatnonzero(is_common).astype(np.int32)
        whole = np.ascontiguousarray(by_word[:, common].toarray().T)
        ids, values = by_word.indices, by_word.data
        del by_word
        ids = ids[in_rare].astype(np.int32, copy=False)
        return cls(SparseRows(ends, ids, values[in_rare]), common, whole, firsts)

    @property
    def rows(self) -> int:
        """Number of documents, or of passages."""
        return self.common_values.shape[1]

    def sums(self, queries: sp.csr_array) -> np.ndarray:
        """The scores of all documents, `[queries, documents]` float32."""
        if self.firsts is None:
            return self.of_queries(queries)
        sums = np.empty((queries.shape[0], len(self.firsts) - 1), np.float32)
        for _, some in query_chunks(np.arange(len(sums)), self.rows):
            sums[some] = list(map(self.best, self.of_queries(queries[some])))
        return sums

    def of_queries(self, queries: sp.csr_array) -> np.ndarray:
        """Σ_w n(w, q) impact(w, d), `[queries, rows]` float32; equal rows have equal sums."""
        places = places_among(self.common, queries.indices)
        rare, common = (kept_entries(queries, kept) for kept in (places < 0, places >= 0))
        common = common.data, places[places >= 0].astype(np.int32), common.indptr
        common = sp.csr_array(common, shape=(queries.shape[0], len(self.common)))
        sums = sp.csr_array(rare @ self._rare, dtype=np.float32).toarray()
        sums += common.astype(np.float32) @ self.common_values
        return sums

    @functools.cached_property
    def _rare(self) -> sp.csr_array:
        """The lists of rare words, `[words, rows]` float32."""
        lists = self.rare.values, self.rare.ids, ends_of(np.diff(self.rare.ends))
        return sp.csr_array(lists, shape=(len(self.rare), self.rows))

    def best(self, of_rows: np.ndarray) -> np.ndarray:
        """Scores of documents, each that of its best passage, `[documents]` float32."""
        if self.firsts is None:
            return of_rows
        is_first, several, rows, begins = self._several
        scores = of_rows[is_first]
        if len(several):
            scores[several] = np.maximum.reduceat(of_rows[rows], begins)
        return scores

    @functools.cached_property
    def _several(self) -> tuple[np.ndarray, ...]:
        """Whether each row begins a document; which ones have several, and these rows, in order."""
        of_each = np.diff(self.firsts)
        several = np.flatnonzero(of_each > 1)  # few, as a rule
        begins = np.cumsum(of_each[several]) - of_each[several]
        rows = ranges(self.firsts[several], of_each[several])
        is_first = np.bincount(self.firsts[:-1], minlength=self.rows).astype(bool)
        return is_first, several, rows, begins

    def best_rows(self, of_rows: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """The row of the best passage of some documents; of equal ones the first."""
        if self.firsts is None:
            return documents
        begins, ends = self.firsts[documents], self.firsts[documents + 1]
        for place in np.flatnonzero(ends - begins > 1):
            begins[place] += of_rows[begins[place] : ends[place]].argmax()
        return begins


def lexical_rows(
    queries: sp.csr_array, impacts: sp.csr_array, firsts: np.ndarray | None = None
) -> ScoreRows:
    """Scorer by sums over `[queries, words]` counts and impacts of documents or passages."""
    # With `firsts` of `Words`, impacts are those of passages, and the best one counts.
    postings = Postings.of(impacts, firsts)
    return lambda query_rows: postings.sums(queries[query_rows])


def places_among(common: np.ndarray, words: np.ndarray) -> np.ndarray:
    """The places of words among the common ones, `[words]` int; -1 for others."""
    places = np.searchsorted(common, words)
    # -1, which is no word, stands after the last one for words beyond it.
    return np.where(np.append(common, -1)[places] == words, places, -1)


def are_common(lengths: np.ndarray, rows: int) -> np.ndarray:
    """Whether words are common by the lengths of their lists, `[words]` bool."""
    return lengths > COMMON * rows


def highest(scores: np.ndarray, depth: int) -> np.ndarray:
    """The places of the `depth` highest scores, `[documents]`, and of all that equal the last."""
    # Several times faster than `np.argpartition` where most scores are low.
    places = slice(None)
    groups = len(scores) // _GROUP
    if groups >= depth:  # as many groups have a score that high, so the highest scores do
        # Every `groups`-th score is of one group, because whole rows are compared fastest.
        # Documents after the last whole group belong to none, and are compared like all others.
        largest = scores[: groups * _GROUP].reshape(_GROUP, groups).max(axis=0)
        places = np.flatnonzero(scores >= np.partition(largest, -depth)[-depth])
    # An exact selection among the few that are left, ties of the last one included.
    candidates = scores[places]
    best = np.flatnonzero(candidates >= np.partition(candidates, -depth)[-depth])
    return best if isinstance(places, slice) else places[best]
