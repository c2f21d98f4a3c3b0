"""Weight of a re-ranker next to the first stage: chosen on validation, and possibly 0.

The share that is best on a sample is a little better there than it deserves. So it has to be better
than the first stage alone by more than a standard error, and by no metric worse, as the halves of a
hybrid have to. MAP is watched as well: a network that looks for the one best document may put
related ones below random ones. It may fall by no more than NDCG@5 and MRR@10 rise together.
"""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists, candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.metrics import per_query_metrics, ranked_grades
from tf_smoothclir.lexical.validation import is_better, quality
from tf_smoothclir.protocols.scorer import Ranking, Retriever, Scorer, ordered

# What a standard deviation of the re-ranker's scores counts, of one of the first stage's scores.
SHARES = (0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0)
_SPREAD_OVER = 10  # documents: where the order of the first ranks is decided
_NEGATIVES = 40
_DEPTH = 10
_WITH_MAP = (0, 1, 3)  # NDCG@5, MRR@10 and MAP


class FirstStageValidation:
    """The rankings of validation queries by a first stage, and what a re-ranker makes of them."""

    def __init__(self, retrieval_set: RetrievalSet, first_stage: Retriever, depth: int):
        self._set = retrieval_set
        self._lists = candidate_lists(retrieval_set, "validation", negatives=_NEGATIVES, seed=13)
        self._of_lists = first_stage.score(self._lists)
        self.ranking = Ranking.joined(first_stage.rank(self._lists.query_rows, depth))

    def top(self, queries: int, depth: int) -> tuple[CandidateLists, Ranking]:
        """The first ranks of some queries, as lists and as a ranking."""
        some = np.linspace(0, len(self.ranking.query_rows), queries, endpoint=False).astype(int)
        some = np.unique(some)
        ranking = Ranking(
            self.ranking.query_rows[some],
            self.ranking.document_rows[some, :depth],
            self.ranking.scores[some, :depth],
        )
        return ranking.candidate_lists(self._set), ranking

    def unit(self, scores: np.ndarray, ranking: Ranking | None = None) -> float:
        """The weight by which scores spread as much as those of the first stage.

        Args:
            scores: `[queries, depth]`, of the re-ranker.
        """
        first = (ranking or self.ranking).scores
        spreads = (one[:, :_SPREAD_OVER].std(axis=1).mean() for one in (first, scores))
        of_first, of_scores = map(float, spreads)
        return (of_first or 1.0) / of_scores if of_scores else 0.0

    def best(self, scorer: Scorer) -> tuple[float, float, dict[float, float]]:
        """The best weight of a re-ranker, 0 for the first stage alone."""
        of_lists = scorer.score(self._lists)
        scores = scorer.score(self.ranking.candidate_lists(self._set))
        scores = scores.reshape(self.ranking.scores.shape)
        unit = self.unit(scores)
        measured = {share: self._measure(share * unit, of_lists, scores) for share in SHARES}
        values = {share: quality(one) for share, one in measured.items()}
        sound = [share for share in SHARES if _is_sound(measured[share], measured[0.0])]
        chosen = max(sound, key=values.get, default=0.0)
        return chosen * unit, chosen, values

    def _measure(self, weight: float, of_lists: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Metrics per query of a ranking, as `Validation.per_query` has them, and MAP."""
        ties = self._set.tie_order[self._lists.document_rows]
        of_lists = self._of_lists + np.float32(weight) * of_lists
        ranked = ranked_grades(of_lists, self._lists.grades, self._lists.offsets, ties)
        of_lists = per_query_metrics(ranked, self._set.num_grades)
        ndcg, precision = of_lists["NDCG@5"], of_lists["MAP"]
        added = self.ranking.scores + np.float32(weight) * scores
        reciprocals = reciprocal_ranks(ordered(self.ranking, added, self._set), self._set)
        return np.stack([ndcg, reciprocals, np.equal(reciprocals, 1), precision], axis=1)


def _is_sound(measured: np.ndarray, first_stage: np.ndarray) -> bool:
    return is_better(measured, first_stage) and is_better(measured, first_stage, _WITH_MAP)


def reciprocal_ranks(ranking: Ranking, retrieval_set: RetrievalSet) -> np.ndarray:
    """`[queries]`, 1 / rank of the first document of the query's highest grade.

    0 where it is not among the first 10.
    """
    highest = np.zeros(len(retrieval_set.query_ids), int)
    np.maximum.at(highest, retrieval_set.query_rows, retrieval_set.grades)
    wanted = np.maximum(1, highest[ranking.query_rows, np.newaxis])
    found = ranking.grades(retrieval_set)[:, :_DEPTH] == wanted
    return np.where(found.any(axis=1), 1 / (found.argmax(axis=1) + 1.0), 0.0)
