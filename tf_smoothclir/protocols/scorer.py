"""Scorers and retrievers: the interface of a family of models to evaluation and mining.

A scorer gives a score to each document of candidate lists. A retriever ranks the whole collection
as well. The top ranks of a retriever can be the candidate lists of another scorer: re-ranking.
Queries and documents are named by their rows in the retrieval set that a scorer was made for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists, pair_key
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.protocols.cut_points import CutPoints


@dataclasses.dataclass(frozen=True)
class Ranking:
    """The best documents of each query, best first.

    Attributes:
        query_rows: `[queries]` int.
        document_rows: `[queries, depth]` int.
        scores: `[queries, depth]` float32.
    """

    query_rows: np.ndarray
    document_rows: np.ndarray
    scores: np.ndarray

    @classmethod
    def joined(cls, rankings: Iterable[Ranking]) -> Ranking:
        """Joins rankings of the same depth, one after the other; there must be at least one."""
        parts = list(rankings)
        return cls(
            np.concatenate([part.query_rows for part in parts]),
            np.concatenate([part.document_rows for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def grades(self, retrieval_set: RetrievalSet) -> np.ndarray:
        """Returns `[queries, depth]` int32, the grade of each document; 0 where nobody judged."""
        judged = pair_key(retrieval_set.query_rows, retrieval_set.document_rows)
        order = np.argsort(judged)
        keys = pair_key(self.query_rows[:, None], self.document_rows)
        place = order[np.minimum(np.searchsorted(judged, keys, sorter=order), len(judged) - 1)]
        return np.where(judged[place] == keys, retrieval_set.grades[place], 0).astype(np.int32)

    def candidate_lists(self, retrieval_set: RetrievalSet) -> CandidateLists:
        """Returns the ranked documents as candidate lists, with the grades of the judgments."""
        queries, depth = self.document_rows.shape
        return CandidateLists(
            query_rows=self.query_rows.astype(np.int32),
            offsets=np.arange(queries + 1, dtype=np.int64) * depth,
            document_rows=self.document_rows.reshape(-1).astype(np.int32),
            grades=self.grades(retrieval_set).reshape(-1),
        )


@runtime_checkable
class Scorer(Protocol):
    """Scores candidate lists."""

    def score(self, lists: CandidateLists) -> np.ndarray:
        """Returns `[pairs]` float32, the score of each pair of the lists."""


@runtime_checkable
class Retriever(Scorer, Protocol):
    """A scorer that also ranks the whole collection."""

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Ranks the collection, a chunk of queries at a time, in bounded memory.

        Args:
            query_rows: `[queries]` int, the queries to answer.
            depth: Documents per query; fewer if the retriever finds fewer.

        Yields:
            The rankings of `query_rows`, in order. Equal scores are in the order of
            `RetrievalSet.tie_order`.
        """


@dataclasses.dataclass(frozen=True)
class GradedScorer:
    """A retriever and what its scores say about grades: all that the evaluation of a run needs.

    Attributes:
        scorer: Made for one set.
        cut_points: Scores at which the predicted grade changes; None where none are known.
    """

    scorer: Retriever
    cut_points: CutPoints | None


class TwoStageRetriever:
    """A retriever that finds the top ranks by one scorer and orders them by another, or by both.

    Alone, the re-ranker orders at most `ranks` documents, and candidate lists are scored by it.
    With a weight, scores are those of the first stage plus the weighted ones of the re-ranker, and
    documents after `ranks` follow in the order of the first stage.
    """

    def __init__(
        self,
        first_stage: Retriever,
        reranker: Scorer,
        retrieval_set: RetrievalSet,
        *,
        ranks: int,
        weight: float | None = None,
    ):
        """Joins two stages.

        Args:
            first_stage: Finds the documents.
            reranker: Scores them.
            retrieval_set: The set of both.
            ranks: Documents per query that the re-ranker sees.
            weight: Of the re-ranker's scores, added to those of the first stage; 0 does not ask it.
                None orders by its scores alone.
        """
        self._first_stage = first_stage
        self._reranker = reranker
        self._set = retrieval_set
        self._ranks = ranks
        self._weight = weight

    def without_collection(self) -> TwoStageRetriever | None:
        """Scorer of documents without their collection; None where that is this one."""
        first_stage = without_collection(self._first_stage)
        return None if first_stage is None else self.over(first_stage)

    def over(self, first_stage: Scorer) -> TwoStageRetriever:
        """Returns a re-ranker over another first stage; it ranks if that one does."""
        return TwoStageRetriever(
            first_stage, self._reranker, self._set, ranks=self._ranks, weight=self._weight
        )

    def score(self, lists: CandidateLists) -> np.ndarray:
        """Returns `[pairs]` float32, whatever place the first stage gives the documents."""
        if self._weight is None:
            return self._reranker.score(lists)
        scores = self._first_stage.score(lists)
        if self._weight:
            scores = scores + np.float32(self._weight) * self._reranker.score(lists)
        return scores

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Yields the top ranks of the first stage in the new order; see `Retriever.rank`."""
        deepest = self._ranks if self._weight is None else max(self._ranks, depth)
        for found in self._first_stage.rank(query_rows, deepest):
            ranking = found
            if self._weight is None:
                ranking = rerank(found, self._reranker, self._set)
            elif self._weight:
                ranking = self._added(found)
            yield Ranking(
                ranking.query_rows, ranking.document_rows[:, :depth], ranking.scores[:, :depth]
            )

    def _added(self, found: Ranking) -> Ranking:
        top = Ranking(
            found.query_rows, found.document_rows[:, : self._ranks], found.scores[:, : self._ranks]
        )
        scores = self._reranker.score(top.candidate_lists(self._set))
        scores = top.scores + np.float32(self._weight) * scores.reshape(top.scores.shape)
        top = ordered(top, scores, self._set)
        rest = found.scores[:, self._ranks :]
        # They stay last: if one would have passed the last of the others, all move down.
        above = np.maximum(0, rest[:, :1] - top.scores[:, -1:])
        return Ranking(
            found.query_rows,
            np.concatenate([top.document_rows, found.document_rows[:, self._ranks :]], axis=1),
            np.concatenate([top.scores, rest - above], axis=1),
        )


def score_and_rank(
    retriever: Retriever, lists: CandidateLists, depth: int
) -> tuple[np.ndarray, Ranking]:
    """Scores lists and ranks the collection for their queries, at once where the retriever can."""
    if (both := getattr(retriever, "score_and_rank", None)) is not None:
        return both(lists, depth)
    return retriever.score(lists), Ranking.joined(retriever.rank(lists.query_rows, depth))


def without_collection(retriever: Scorer) -> Scorer | None:
    """Scorer of documents without their collection; None where that is the retriever."""
    other = getattr(retriever, "without_collection", None)
    return None if other is None else other()


def rerank(ranking: Ranking, scorer: Scorer, retrieval_set: RetrievalSet) -> Ranking:
    """Orders the documents of a ranking by the scores of another scorer.

    Args:
        ranking: Of a first stage.
        scorer: Of the second stage.
        retrieval_set: The set of both; gives the order of equal scores.
    """
    scores = scorer.score(ranking.candidate_lists(retrieval_set))
    return ordered(ranking, scores.reshape(ranking.document_rows.shape), retrieval_set)


def ordered(ranking: Ranking, scores: np.ndarray, retrieval_set: RetrievalSet) -> Ranking:
    """Orders the documents of a ranking by other scores.

    Args:
        ranking: Which documents.
        scores: `[queries, depth]`.
        retrieval_set: Gives the order of equal scores.
    """
    order = np.lexsort((retrieval_set.tie_order[ranking.document_rows], -scores), axis=1)
    return Ranking(
        ranking.query_rows,
        np.take_along_axis(ranking.document_rows, order, axis=1),
        np.take_along_axis(scores, order, axis=1),
    )
