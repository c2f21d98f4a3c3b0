"""Ranking by words and vectors whose ranks are fused; `hybrid.fusion` has the formula."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.hybrid.fusion import DEPTH, Fusion
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.lexical.postings import highest
from tf_smoothclir.search.word_ranker import Query, WordRanker


def hybrid_ranker(index: DocumentIndex, fusion: Fusion) -> WordRanker:
    """Returns what ranks the documents of an index as a fusion says."""
    if fusion.by_ranks:
        return RankFusionRanker(index, fusion)
    return WordRanker(index, fusion.weights, fusion.feedback)


class RankFusionRanker(WordRanker):
    """Ranks by reciprocal ranks of two rankings of an index.

    The ranking by vectors is that of the index: a flat one finds the best 1,000, the others nearly.
    """

    def __init__(self, index: DocumentIndex, fusion: Fusion):
        """Joins an index, which has impacts and vectors, and a fusion by ranks."""
        super().__init__(index, fusion.weights, fusion.feedback)
        self._fusion = fusion
        self._latest_points: tuple[Query | None, np.ndarray | None] = None, None

    def _lexical(self, query: Query) -> np.ndarray:
        scores = self._index.lexical.scores(query.words)
        return self._of_lexical * self._fusion.points(scores[np.newaxis])[0]

    def _dense(self, query: Query, positions: np.ndarray) -> np.ndarray:
        return self._of_dense * self._dense_points(query)[positions]

    def _candidates(self, known: np.ndarray, query: Query, depth: int) -> np.ndarray:
        if not self.has_vectors:
            return highest(known, depth)
        return highest(known + self._of_dense * self._dense_points(query), depth)

    def _dense_points(self, query: Query) -> np.ndarray:
        """Returns the points of all documents by their vectors; the latest are kept."""
        latest, points = self._latest_points
        if latest is not query:
            points = np.zeros(len(self._index), np.float32)
            ((best, scores),) = self._index.dense.rank(query.vector[np.newaxis], DEPTH)
            points[best] = self._fusion.points(scores[np.newaxis])[0]
            self._latest_points = query, points
        return points
