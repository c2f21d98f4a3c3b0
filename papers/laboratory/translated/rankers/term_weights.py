"""Term weights of a collection: a score is a sum over the words of a query."""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.score_rows import ScoreRows, lexical_rows
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import Words


@dataclasses.dataclass(frozen=True)
class Collection:
    """Documents as rankers see them."""

    # `[documents, words]` float32, how often each word stands in each document.
    counts: sp.csr_array
    lengths: np.ndarray  # `[documents]`, words of each document, those without an id too

    @property
    def occurrences(self) -> np.ndarray:
        """`[words]`, how often each word stands in the collection."""
        return np.bincount(self.counts.indices, self.counts.data, minlength=self.counts.shape[1])

    @classmethod
    def of(cls, documents: Words) -> Collection:
        """Counts the words of documents."""
        return cls(documents.matrix(), np.diff(documents.offsets))


@functools.lru_cache(maxsize=1)
def collection_of(texts: LexicalTexts) -> Collection:
    """The documents of a set."""
    return Collection.of(texts.documents)


@dataclasses.dataclass(frozen=True)
class TermWeights:
    """Term weights: what query words add to the scores of documents."""

    impacts: sp.csr_array  # `[documents, words]` float32, what a word adds where it occurs
    # `[documents]` float32, what every query word that the collection has adds besides, by the
    # length of the document; None for nothing.
    of_length: np.ndarray | None = None

    def rows(self, queries: sp.csr_array) -> ScoreRows:
        """Scorer of the collection by `[queries, words]`, counts or weights of words."""
        sums = lexical_rows(queries, self.impacts)
        if self.of_length is None:
            return sums
        occurring = np.bincount(self.impacts.indices, minlength=self.impacts.shape[1]) > 0
        sizes = np.asarray(queries @ occurring.astype(np.float32))

        def rows(query_rows: np.ndarray) -> np.ndarray:
            return sums(query_rows) + np.outer(sizes[query_rows], self.of_length)

        return rows
