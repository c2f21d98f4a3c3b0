"""A retriever that scores all documents at once: candidate lists and rankings from whole rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.lexical.feedback import Feedback
from tf_smoothclir.lexical.score_rows import ScoreRows
from tf_smoothclir.protocols.scorer import Ranking

_SCORES_AT_ONCE = 1 << 24  # 64 MB of float32, of which feedback needs two more
_MOST_QUERIES_AT_ONCE = 256


def query_chunks(query_rows: np.ndarray, documents: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yields where each chunk of queries begins, and its rows: few enough for whole score rows."""
    step = min(_MOST_QUERIES_AT_ONCE, max(1, _SCORES_AT_ONCE // max(1, documents)))
    for begin in range(0, len(query_rows), step):
        yield begin, query_rows[begin : begin + step]


class RowRetriever:
    """Ranks by the scores of all documents, with feedback if there is any; a `Retriever`.

    With feedback, every score depends on the whole collection, so candidate lists cost as much as
    rankings.
    """

    def __init__(
        self,
        rows: ScoreRows,
        tie_order: np.ndarray,
        feedback: Feedback | None = None,
        of_pairs: ScoreRows | None = None,
    ):
        """Takes the scorer of the collection, and the `tie_order` of its `RetrievalSet`."""
        self.rows = rows
        self._tie_order = tie_order
        self._feedback = feedback
        self._of_pairs = of_pairs

    def without_collection(self) -> RowRetriever | None:
        """Retriever that scores documents without their collection; None where it does so."""
        if self._feedback is None and self._of_pairs is None:
            return None
        return RowRetriever(self._of_pairs or self.rows, self._tie_order)

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32, the score of each pair of the lists."""
        parts = [_of_lists(lists, begin, scores) for begin, _, scores in self._chunks(lists)]
        return np.concatenate([np.zeros(0, np.float32), *parts])

    def score_and_rank(self, lists: CandidateLists, depth: int) -> tuple[np.ndarray, Ranking]:
        """Both `score` and `rank` of the queries of some lists, from the same scores."""
        parts, rankings = [], []
        for begin, rows, scores in self._chunks(lists):
            parts.append(_of_lists(lists, begin, scores))
            rankings.append(self._ranking(rows, scores, depth))
        return np.concatenate(parts), Ranking.joined(rankings)

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Ranks the collection for each query, some queries at a time; see `Retriever.rank`."""
        for _, rows in query_chunks(query_rows, len(self._tie_order)):
            yield self._ranking(rows, self.scores(rows), depth)

    def _chunks(self, lists: CandidateLists) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        """Yields where queries begin, their rows, and the scores of all documents."""
        for begin, rows in query_chunks(lists.query_rows, len(self._tie_order)):
            yield begin, rows, self.scores(rows)

    def _ranking(self, query_rows: np.ndarray, scores: np.ndarray, depth: int) -> Ranking:
        # Sorted by the tie rule: among equal scores, top_k takes the lower position first.
        by_tie_order = np.argsort(self._tie_order)
        best, places = tf.math.top_k(scores[:, by_tie_order], min(depth, len(by_tie_order)))
        return Ranking(query_rows, by_tie_order[places.numpy()], best.numpy())

    def scores(self, query_rows: np.ndarray) -> np.ndarray:
        """The scores of all documents, `[queries, documents]` float32."""
        scores = self.rows(query_rows)
        return scores if self._feedback is None else self._feedback.added_to(scores)


def _of_lists(lists: CandidateLists, begin: int, scores: np.ndarray) -> np.ndarray:
    """The scores of the pairs of lists from `begin` on, from those of all documents."""
    ends = lists.offsets[begin : begin + len(scores) + 1]
    own = np.repeat(np.arange(len(scores)), np.diff(ends))
    return scores[own, lists.document_rows[ends[0] : ends[-1]]]
