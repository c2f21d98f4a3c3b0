"""Inverted lists: for each word the documents that have it, and by how much."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

# A word that more than this share of the documents have is common. A few hundred words are, but
# nearly all of the work of a query is theirs, and adding up whole rows is ten times as fast.
COMMON = 0.25
_BLOCK = 64  # scores of which one may be among the highest


@dataclasses.dataclass(frozen=True)
class SparseRows:
    """The rows of a sparse matrix, in memory or memory-mapped.

    Attributes:
        ends: `[rows + 1]` int64, where each row begins, and the last ends.
        ids: `[values]` int32, the column of each value.
        values: `[values]` float32.
    """

    ends: np.ndarray
    ids: np.ndarray
    values: np.ndarray

    @classmethod
    def of(cls, matrix: sp.csr_array) -> SparseRows:
        """Takes `[rows, columns]` of float32."""
        indices = matrix.indices.astype(np.int32, copy=False)
        return cls(matrix.indptr.astype(np.int64, copy=False), indices, matrix.data)

    def __len__(self) -> int:
        return len(self.ends) - 1

    def row(self, number: int) -> slice:
        """Returns where a row is."""
        return slice(self.ends[number], self.ends[number + 1])


@dataclasses.dataclass(frozen=True)
class Postings:
    """Sums of a few columns of a sparse matrix, which are long: a query asks for few of all words.

    Attributes:
        rare: A row for each word, its documents in ascending order; empty for common words.
        common: `[common]` int32, ascending, the words whose rows are stored whole.
        common_values: `[common, documents]` float32, these rows.
    """

    rare: SparseRows
    common: np.ndarray
    common_values: np.ndarray

    @classmethod
    def of(cls, impacts: sp.csr_array) -> Postings:
        """Takes `[documents, words]` float32, what a word adds to the score of a document."""
        by_word = impacts.tocsc()
        lengths = np.diff(by_word.indptr)
        common = common_words(lengths, impacts.shape[0])
        common_values = np.zeros((len(common), impacts.shape[0]), np.float32)
        for row, word in zip(common_values, common):
            part = slice(by_word.indptr[word], by_word.indptr[word + 1])
            row[by_word.indices[part]] = by_word.data[part]
        if len(common):
            keep = np.ones(len(lengths), bool)
            keep[common] = False
            kept = np.repeat(keep, lengths)
            ends = np.cumsum([0, *np.where(keep, lengths, 0)])
            rare = SparseRows(ends, by_word.indices[kept].astype(np.int32), by_word.data[kept])
        else:
            rare = SparseRows.of(by_word)
        return cls(rare, common, common_values)

    @property
    def documents(self) -> int:
        """Number of documents."""
        return self.common_values.shape[1]

    def sums(self, queries: sp.csr_array) -> np.ndarray:
        """Returns Σ_w n(w, q) impact(w, d) of all documents, `[queries, documents]` float32.

        Args:
            queries: `[queries, words]`, counts or weights of words.
        """
        sums = np.zeros((queries.shape[0], self.documents), np.float32)
        for row, begin, end in zip(sums, queries.indptr[:-1], queries.indptr[1:]):
            self.add_to(row, queries.indices[begin:end], queries.data[begin:end])
        return sums

    def add_to(self, scores: np.ndarray, words: Sequence[int], weights: Sequence[float]) -> None:
        """Adds the words of one query to `[documents]` float32, each times its weight."""
        places = np.searchsorted(self.common, words).tolist()
        part = np.empty(self.documents, np.float32)
        for word, weight, place in zip(np.asarray(words).tolist(), weights, places):
            if place < len(self.common) and self.common[place] == word:
                scores += np.multiply(self.common_values[place], np.float32(weight), out=part)
            else:
                row = self.rare.row(word)
                scores[self.rare.ids[row]] += np.float32(weight) * self.rare.values[row]


def common_words(documents_with: np.ndarray, documents: int) -> np.ndarray:
    """Returns the words whose rows are stored whole, int32, ascending.

    Args:
        documents_with: `[words]` int, how many documents have each word.
        documents: Number of documents.
    """
    return np.flatnonzero(documents_with > COMMON * documents).astype(np.int32)


def highest(scores: np.ndarray, depth: int) -> np.ndarray:
    """Returns the places of the `depth` highest scores, and of all that equal the last of them.

    Several times faster than `np.argpartition` where most scores are low.

    Args:
        scores: `[documents]` float32.
        depth: At most the number of documents.

    Returns:
        Int64, ascending.
    """
    places = np.arange(len(scores))
    whole = len(scores) // _BLOCK
    if whole >= depth:  # as many blocks have a score that high, so the highest scores do
        blocks = scores[: whole * _BLOCK].reshape(whole, _BLOCK).max(axis=1)
        places = np.flatnonzero(scores >= np.partition(blocks, -depth)[-depth])
    found = scores[places]
    return places[found >= np.partition(found, -depth)[-depth]]
