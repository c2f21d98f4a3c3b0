"""Validation: figures of the candidate lists of the validation split, after each epoch."""

from __future__ import annotations

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.evaluation.encoding import EncodedSet, Encoder
from tf_smoothclir.evaluation.evaluate import NEGATIVES_SEED
from tf_smoothclir.evaluation.metrics import mean_metrics
from tf_smoothclir.evaluation.reranking import list_metrics, score_lists
from tf_smoothclir.two_tower.model import TwoTower


class Validation:
    """Evaluates a model on the validation queries of a set, again and again.

    Attributes:
        lists: The candidate lists of the split.
    """

    def __init__(self, model: TwoTower, tokenized_set: TokenizedSet, negatives: int):
        """Evaluates the current weights of `model`, with so many sampled documents a query."""
        self._set = tokenized_set.retrieval_set
        self._encoder = Encoder(model, tokenized_set)
        self.lists = candidate_lists(
            self._set, "validation", negatives=negatives, seed=NEGATIVES_SEED
        )

    def __call__(self) -> tuple[dict[str, float], EncodedSet]:
        """Returns the mean of each metric, and the vectors of the whole set."""
        encoded = self._encoder()
        scores = score_lists(encoded, self.lists)
        per_query = list_metrics(encoded, self.lists, scores, self._set.num_grades)
        return mean_metrics(per_query), encoded
