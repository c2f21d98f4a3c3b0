"""Validation: metrics of the candidate lists of the validation split, after each epoch."""

from __future__ import annotations

from collections.abc import Callable

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED
from tf_smoothclir.evaluation.metrics import list_metrics, mean_metrics
from tf_smoothclir.protocols.scorer import Scorer


class Validation:
    """Evaluates a model on the validation queries of a set, again and again."""

    def __init__(
        self, make_scorer: Callable[[], Scorer], retrieval_set: RetrievalSet, negatives: int
    ):
        self._make_scorer = make_scorer
        self._set = retrieval_set
        self.lists = candidate_lists(
            retrieval_set, "validation", negatives=negatives, seed=NEGATIVES_SEED
        )

    def __call__(self) -> tuple[dict[str, float], Scorer]:
        """The mean of each metric, and the scorer that was measured."""
        scorer = self._make_scorer()
        per_query = list_metrics(self._set, self.lists, scorer.score(self.lists))
        return mean_metrics(per_query), scorer
