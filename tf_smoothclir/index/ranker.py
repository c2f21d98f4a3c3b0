"""Ranking by an index: candidates from FAISS, exact scores, and one order for equal scores."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.index.vector_index import VectorIndex, chunks
from tf_smoothclir.ops.top_k import top_k

RECALL_DEPTH = 10
_QUERIES_PER_CALL = 256
_VECTORS_PER_CALL = 1 << 16
_SAME_SCORE = 1e-6  # scores closer than this may come in either order


class Ranker:
    """Ranks documents by their vectors, among those that FAISS proposes.

    A flat index proposes every document that can be among the best, so its ranking is exact. Scores
    are computed in float64 and rounded to float32: the same vectors always have the same score,
    whatever else is in the index or in the batch. Equal scores are ordered by the hash of the id.

    Attributes:
        vectors: `[documents, dim]` float32, memory-mapped.
        documents: Number of documents.
    """

    def __init__(self, index: VectorIndex, vectors: np.ndarray, hashes: np.ndarray):
        """Joins an index with its documents.

        Args:
            index: Holds all `vectors`.
            vectors: `[documents, dim]` float32.
            hashes: `[documents]` uint64, of the ids.
        """
        self._index, self.vectors, self._hashes = index, vectors, hashes
        self.documents = len(vectors)

    @property
    def exact(self) -> bool:
        """Whether the ranking is always exact."""
        return self._index.settings.kind == "flat"

    def rank(self, queries: np.ndarray, depth: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Returns the best documents of each query.

        Args:
            queries: `[queries, dim]`.
            depth: Documents per query; an approximate index may find fewer.

        Returns:
            For each query `(positions int64, scores float32)`, best first.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        depth, ranked = min(depth, self.documents), []
        for begin in range(0, len(queries), _QUERIES_PER_CALL):
            part = queries[begin : begin + _QUERIES_PER_CALL]
            scores, positions = self._index.search(part, depth)
            for query, bounds, found in zip(part, scores, positions):
                ranked.append(self._rank_one(query, bounds, found, depth))
        return ranked

    def _rank_one(self, query, bounds, found, depth: int) -> tuple[np.ndarray, np.ndarray]:
        if not query.any():  # such as an empty query: every score is 0
            best = np.argsort(self._hashes, kind="stable")[:depth]
            return best, np.zeros(len(best), np.float32)
        positions, scores = self._best(query, found[found >= 0], depth)
        # FAISS computes in float32: a document that it scores a little lower may be as good.
        least = scores[-1] - 2.0**-22 * len(query) if len(scores) else 0.0
        unseen = len(found) < self.documents and bounds[-1] >= least
        if self.exact and unseen:
            found = self._index.range_search(query, least)
            return self._best(query, found, depth)
        return positions, scores

    def _best(self, query, positions, depth: int) -> tuple[np.ndarray, np.ndarray]:
        scores = self.scores(query, positions)
        order = np.lexsort((self._hashes[positions], -scores))[:depth]
        return positions[order], scores[order]

    def scores(self, query: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Returns the SCS of a query and documents.

        Args:
            query: `[dim]`.
            positions: `[documents]` int64.

        Returns:
            `[documents]` float32.
        """
        query, scores = query.astype(np.float64), np.empty(len(positions), np.float32)
        for begin in range(0, len(positions), _VECTORS_PER_CALL):
            part = slice(begin, begin + _VECTORS_PER_CALL)
            # Not a matrix product, whose last bits depend on what else is multiplied.
            scores[part] = (self.vectors[positions[part]] * query).sum(axis=1)
        return scores

    def recall(self, queries: np.ndarray, depth: int = RECALL_DEPTH) -> float:
        """Returns the share of the exact best documents that is found, on average.

        A found document counts if its score reaches that of the last of the exact best, so that
        ties and duplicates do not look like errors.

        Args:
            queries: `[queries, dim]`.
            depth: How many best documents are looked for.
        """
        queries = np.ascontiguousarray(queries, np.float32)
        depth = min(depth, self.documents)
        best_scores, _ = top_k(queries, chunks(self.vectors), depth)
        reached = [
            np.count_nonzero(scores >= last - _SAME_SCORE)
            for (_, scores), last in zip(self.rank(queries, depth), best_scores.numpy()[:, -1])
        ]
        return float(np.mean(reached) / depth)
