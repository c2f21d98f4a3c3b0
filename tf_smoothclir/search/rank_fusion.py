"""Ranking by words and vectors whose ranks are fused; `hybrid.fusion` has the formula."""

from __future__ import annotations

import functools

import numpy as np

from tf_smoothclir.hybrid.fusion import DEPTH, Fusion
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.lexical.postings import highest
from tf_smoothclir.search.word_ranker import AskedQuery, Query, WordRanker


def ranker_of(index: DocumentIndex, fusion: Fusion) -> WordRanker:
    """Ranker of the documents of an index by a fusion."""
    if fusion.by_ranks:
        return RankFusionRanker(index, fusion)
    return WordRanker(index, fusion.weights, fusion.feedback)


class RankFusionRanker(WordRanker):
    """Ranks by reciprocal ranks of two rankings of an index.

    The ranking by vectors is that of the index: a flat one finds the best 1,000, the others nearly.
    """

    def __init__(self, index: DocumentIndex, fusion: Fusion):
        super().__init__(index, fusion.weights, fusion.feedback)
        self.fusion = fusion

    def ask(self, query: Query) -> AskedQuery:
        return _RankedByBoth(self, query)


class _RankedByBoth(AskedQuery):
    _ranker: RankFusionRanker

    def _of_words(self) -> np.ndarray:
        scores = self._ranker.index.lexical.scores(self.query.words)
        return self._ranker.of_lexical * self._ranker.fusion.points(scores[np.newaxis])[0]

    def _of_vectors(self, positions: np.ndarray) -> np.ndarray:
        return self._ranker.of_dense * self._points[positions]

    def _candidates(self, known: np.ndarray, depth: int) -> np.ndarray:
        if self._ranker.dense is None:
            return highest(known, depth)
        return highest(known + self._ranker.of_dense * self._points, depth)

    @functools.cached_property
    def _points(self) -> np.ndarray:
        """The points of all documents by their vectors, `[documents]` float32."""
        points = np.zeros(len(self._lexical), np.float32)
        ((best, scores),) = self._ranker.dense.rank(self.query.vector[np.newaxis], DEPTH)
        points[best] = self._ranker.fusion.points(scores[np.newaxis])[0]
        return points
