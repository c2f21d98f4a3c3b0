"""Scorers and retrievers: the interface of a family of models to evaluation and mining.

A scorer gives a score to each document of candidate lists. A retriever ranks the whole collection
as well. The top ranks of a retriever can be the candidate lists of another scorer: re-ranking.
Queries and documents are named by their rows in the retrieval set that a scorer was made for.
"""

import abc
import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol, Self

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists, pair_key
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.utils.parallel import map_in_threads

# From `[queries]` rows to the scores of all documents, `[queries, documents]` float32.
ScoreRows = Callable[[np.ndarray], np.ndarray]
_SCORES_AT_ONCE = 1 << 22  # 16 MB of float32 in each thread, of which feedback needs two more
_MOST_QUERIES_AT_ONCE = 64


@dataclasses.dataclass(frozen=True)
class Ranking:
    """The best documents of each query, best first."""

    query_rows: np.ndarray  # `[queries]` int
    document_rows: np.ndarray  # `[queries, depth]` int
    scores: np.ndarray  # `[queries, depth]` float32

    @classmethod
    def joined(cls, rankings: Iterable[Self]) -> Self:
        """Joins rankings of the same depth, one after the other; there must be at least one."""
        parts = list(rankings)
        return cls(
            np.concatenate([part.query_rows for part in parts]),
            np.concatenate([part.document_rows for part in parts]),
            np.concatenate([part.scores for part in parts]),
        )

    def cut(self, depth: int) -> Self:
        """Returns the first `depth` documents of each query."""
        return type(self)(self.query_rows, self.document_rows[:, :depth], self.scores[:, :depth])

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


class Scorer(Protocol):
    """Scores candidate lists."""

    def score(self, lists: CandidateLists) -> np.ndarray:
        """Returns `[pairs]` float32, the score of each pair of the lists."""


class Retriever(abc.ABC):
    """A `Scorer` that also ranks the whole collection."""

    @abc.abstractmethod
    def score(self, lists: CandidateLists) -> np.ndarray:
        """Returns `[pairs]` float32, the score of each pair of the lists."""

    @abc.abstractmethod
    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Ranks the collection, a chunk of queries at a time, in bounded memory.

        Args:
            query_rows: `[queries]` int, the queries to answer.
            depth: Documents per query; fewer if the retriever finds fewer.

        Yields:
            The rankings of `query_rows`, in order. Equal scores are in the order of
            `RetrievalSet.tie_order`.
        """

    def known_words(self, query_rows: np.ndarray) -> np.ndarray:
        """`[queries]`, how many words of each query scores are sums over; 1 if they are none."""
        return np.ones(len(query_rows), int)

    def score_and_rank(self, lists: CandidateLists, depth: int) -> tuple[np.ndarray, Ranking]:
        """Returns both `score` and `rank`, of the queries of the lists, at once if that is less."""
        return self.score(lists), Ranking.joined(self.rank(lists.query_rows, depth))


class RowRetriever(Retriever):
    """Ranks by the scores of all documents, with feedback if there is any.

    With feedback, every score depends on the whole collection, so candidate lists cost as much as
    rankings.
    """

    def __init__(
        self,
        rows: ScoreRows,
        tie_order: np.ndarray,
        feedback: Callable[[np.ndarray], np.ndarray] | None = None,
        known_words: Callable[[np.ndarray], np.ndarray] | None = None,
    ):
        """Joins what scores a collection.

        Args:
            rows: Scores without feedback; threads call it.
            tie_order: `[documents]`, of the `RetrievalSet`.
            feedback: From scores to scores with feedback.
            known_words: From rows of queries to numbers of words; see `Retriever`.
        """
        self.known_words = known_words or super().known_words
        self.rows, self._tie_order, self._feedback = rows, tie_order, feedback

    def scores(self, query_rows: np.ndarray) -> np.ndarray:
        """The scores of all documents, `[queries, documents]` float32."""
        scores = self.rows(query_rows)
        return scores if self._feedback is None else self._feedback(scores)

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32, the score of each pair of the lists."""
        parts = self._of_chunks(lists.query_rows, functools.partial(_of_lists, lists))
        return np.concatenate([np.zeros(0, np.float32), *parts])

    def score_and_rank(self, lists: CandidateLists, depth: int) -> tuple[np.ndarray, Ranking]:
        """Both from the same scores."""

        def both(first: int, *of_chunk: np.ndarray) -> tuple[np.ndarray, Ranking]:
            return _of_lists(lists, first, *of_chunk), self._ranking(*of_chunk, depth)

        parts, rankings = zip(*self._of_chunks(lists.query_rows, both))
        return np.concatenate(parts), Ranking.joined(rankings)

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Ranks the collection for each query, some queries at a time; see `Retriever.rank`."""
        return self._of_chunks(query_rows, lambda _, *of_chunk: self._ranking(*of_chunk, depth))

    def _of_chunks(self, query_rows: np.ndarray, function: Callable) -> Iterator:
        """Calls `function(first, rows, scores)` in threads, for some queries each."""

        def of_chunk(chunk: tuple[int, np.ndarray]) -> Any:
            return function(*chunk, self.scores(chunk[1]))

        return map_in_threads(of_chunk, query_chunks(query_rows, len(self._tie_order)))

    def _ranking(self, query_rows: np.ndarray, scores: np.ndarray, depth: int) -> Ranking:
        import tensorflow as tf  # here, because searches need none of it

        # Sorted by the tie rule: among equal scores, top_k takes the lower position first.
        by_tie_order = np.argsort(self._tie_order)
        best, places = tf.math.top_k(scores[:, by_tie_order], min(depth, len(by_tie_order)))
        return Ranking(query_rows, by_tie_order[places.numpy()], best.numpy())


def _of_lists(
    lists: CandidateLists, first: int, query_rows: np.ndarray, scores: np.ndarray
) -> np.ndarray:
    """`[pairs]` float32 of some lists in a row, from the scores of all documents."""
    ends = lists.offsets[first : first + len(query_rows) + 1]
    list_of_pair = np.repeat(np.arange(len(query_rows)), np.diff(ends))
    return scores[list_of_pair, lists.document_rows[ends[0] : ends[-1]]]


def query_chunks(query_rows: np.ndarray, documents: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yields where each chunk of queries begins, and its rows: few enough for whole score rows."""
    step = min(_MOST_QUERIES_AT_ONCE, max(1, _SCORES_AT_ONCE // max(1, documents)))
    for begin in range(0, len(query_rows), step):
        yield begin, query_rows[begin : begin + step]


class TwoStageRetriever(Retriever):
    """A retriever that finds the top ranks by one scorer and orders them by two.

    Scores are those of the first stage plus the weighted ones of the re-ranker; documents after
    `ranks` follow in the order of the first stage.
    """

    def __init__(
        self,
        first_stage: Retriever,
        reranker: Scorer,
        retrieval_set: RetrievalSet,
        *,
        ranks: int,
        weight: float,
    ):
        """Joins two stages.

        Args:
            first_stage: Finds the documents.
            reranker: Scores them.
            retrieval_set: The set of both.
            ranks: Documents per query that the re-ranker sees.
            weight: Of the re-ranker's scores, added to those of the first stage; 0 does not ask it.
        """
        self._first_stage = first_stage
        self._reranker = reranker
        self._set = retrieval_set
        self._ranks = ranks
        self._weight = weight

    def score(self, lists: CandidateLists) -> np.ndarray:
        """Returns `[pairs]` float32, whatever place the first stage gives the documents."""
        return self._with_reranker(self._first_stage.score(lists), lists)

    def _with_reranker(self, scores: np.ndarray, lists: CandidateLists) -> np.ndarray:
        if not self._weight:
            return scores
        return scores + np.float32(self._weight) * self._reranker.score(lists)

    def rank(self, query_rows: np.ndarray, depth: int) -> Iterator[Ranking]:
        """Yields the top ranks of the first stage in the new order; see `Retriever.rank`."""
        for ranking in self._first_stage.rank(query_rows, max(self._ranks, depth)):
            yield (self._added(ranking) if self._weight else ranking).cut(depth)

    def _added(self, ranking: Ranking) -> Ranking:
        top = ranking.cut(self._ranks)
        scores = self._with_reranker(top.scores.ravel(), top.candidate_lists(self._set))
        top = ordered(top, scores.reshape(top.scores.shape), self._set)
        rest = ranking.scores[:, self._ranks :]
        # They stay last: if one would have passed the last of the others, all move down.
        above = np.maximum(0, rest[:, :1] - top.scores[:, -1:])
        return Ranking(
            ranking.query_rows,
            np.concatenate([top.document_rows, ranking.document_rows[:, self._ranks :]], axis=1),
            np.concatenate([top.scores, rest - above], axis=1),
        )


def ordered(ranking: Ranking, scores: np.ndarray, retrieval_set: RetrievalSet) -> Ranking:
    """The documents of a ranking by other scores, `[queries, depth]`; the set orders equal ones."""
    order = np.lexsort((retrieval_set.tie_order[ranking.document_rows], -scores), axis=1)
    return Ranking(
        ranking.query_rows,
        np.take_along_axis(ranking.document_rows, order, axis=1),
        np.take_along_axis(scores, order, axis=1),
    )
