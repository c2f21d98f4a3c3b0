"""Ranking by an index: candidates from FAISS, exact scores, and one order for equal scores."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tf_smoothclir.utils.errors import input_error

if TYPE_CHECKING:
    from tf_smoothclir.index.vector_index import FlatIndex, HnswIndex
    from tf_smoothclir.storage.random_access import StoredMatrix

_QUERIES_PER_CALL = 256
_VECTORS_PER_CALL = 1 << 16
_TIMES_MORE = 8  # candidates, where the first ones may not have been enough
_FEW = 1 << 14  # documents that are all scored where no others may be found


class Nearest(NamedTuple):
    """Documents near a query: their positions, and nearly their SCS."""

    # No other document has a higher SCS than `others`, as far as the index knows.

    positions: np.ndarray
    scores: np.ndarray
    error: float
    others: float


class Ranker:
    """Ranks documents by `[documents, dim]` vectors, among those that an index proposes."""

    # A flat index proposes every document that can be among the best, so its ranking is
    # exact. Scores are computed in float64 and rounded to float32: the same vectors always
    # have the same score, whatever else is in the index or in the batch. Equal scores are
    # ordered by the hash of the id.

    def __init__(self, index: FlatIndex | HnswIndex, vectors: StoredMatrix, hashes: np.ndarray):
        self._index, self.vectors, self._hashes = index, vectors, hashes
        self.documents = len(vectors)

    def rank(
        self, queries: np.ndarray, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yields positions and scores of the best documents of each query, best first."""
        queries, dim = np.ascontiguousarray(queries, np.float32), self.vectors.shape[1]
        if queries.shape[1] != dim:
            raise input_error(
                "query vectors",
                f"they have {queries.shape[1]} numbers, those of the index {dim}",
                "Use the query tower of the same training run",
            )
        allowed = self.documents if mask is None else int(np.count_nonzero(mask))
        depth, wanted = min(depth, allowed), self._index.candidates(min(depth, allowed))
        if mask is not None and allowed <= _FEW:
            some = np.flatnonzero(mask)
            yield from (self._best(query, some, depth) for query in queries)
            return
        candidates = min(wanted * self.documents // max(allowed, 1), self.documents)
        for begin in range(0, len(queries), _QUERIES_PER_CALL):
            part = queries[begin : begin + _QUERIES_PER_CALL]
            for query, *found in zip(part, *self._index.search(part, candidates)):
                yield self._rank_one(query, *found, depth, mask)

    def nearest(self, query: np.ndarray, number: int) -> Nearest:
        """So many documents near a query, `[dim]`."""
        query = np.ascontiguousarray(query, np.float32)
        number = min(number, self.documents)
        ((scores, positions),) = zip(*self._index.search(query[None], number))
        error = self._index.error(query)
        if not np.isfinite(error):  # rough scores, by which no others can be ruled out
            positions = positions[positions >= 0]
            scores, error = self.about(query, positions), 2.0**-22 * len(query)
        others = -np.inf
        if 0 < len(positions) < self.documents:
            others = float(scores.min()) + error
        return Nearest(positions, scores, error, others)

    def about(self, query: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The SCS of a query and documents in float32, off by no more than 2^-22 dim."""
        scores = np.empty(len(positions), np.float32)
        for begin in range(0, len(positions), _VECTORS_PER_CALL):
            part = slice(begin, begin + _VECTORS_PER_CALL)
            # Not by `@`, whose threads wait for each other where cores are busy.
            scores[part] = np.einsum("ij,j->i", self.vectors[positions[part]], query)
        return scores

    def _rank_one(
        self,
        query: np.ndarray,
        bounds: np.ndarray,
        found: np.ndarray,
        depth: int,
        mask: np.ndarray | None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores the documents that may be among the best by the scores of the index."""
        if not query.any():  # such as an empty query: every score is 0
            best = np.argsort(self._hashes, kind="stable")[:depth]
            return best, np.zeros(len(best), np.float32)
        error = self._index.error(query)
        is_bound = np.isfinite(error)
        while True:
            kept = found >= 0
            if mask is not None:
                kept &= mask[found]
            # The best `depth` by the index may be lower by an error, and others higher by one.
            enough = np.count_nonzero(kept) >= depth
            least = bounds[kept][depth - 1] - 2 * error if enough and is_bound else -np.inf
            is_enough = bounds[-1] < least if is_bound else enough or mask is None
            if is_enough or len(found) == self.documents:
                return self._best(query, found[kept & (bounds >= least)], depth)
            more = min(_TIMES_MORE * len(found), self.documents)
            ((bounds, found),) = zip(*self._index.search(query[None], more))

    def _best(self, query, positions, depth: int) -> tuple[np.ndarray, np.ndarray]:
        scores = self.scores(query, positions)
        order = np.lexsort((self._hashes[positions], -scores))[:depth]
        return positions[order], scores[order]

    def scores(self, query: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The SCS of a query, `[dim]`, and some documents, `[positions]` float32."""
        query, scores = query.astype(np.float64), np.empty(len(positions), np.float32)
        for begin in range(0, len(positions), _VECTORS_PER_CALL):
            part = slice(begin, begin + _VECTORS_PER_CALL)
            # Not a matrix product, whose last bits depend on what else is multiplied.
            scores[part] = (self.vectors[positions[part]] * query).sum(axis=1)
        return scores
