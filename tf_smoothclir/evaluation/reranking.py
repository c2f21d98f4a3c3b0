"""Re-ranking: scores and metrics over candidate lists, and over predicted grades."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.evaluation.encoding import EncodedSet
from tf_smoothclir.evaluation.metrics import per_query_metrics, ranked_grades

_PAIRS_PER_CHUNK = 1 << 17


def score_lists(encoded: EncodedSet, lists: CandidateLists) -> np.ndarray:
    """Returns `[pairs]` float32, the score of every pair of the lists."""
    queries, documents = lists.pair_query_rows, lists.document_rows
    scores = np.empty(len(documents), np.float32)
    for begin in range(0, len(documents), _PAIRS_PER_CHUNK):
        part = slice(begin, begin + _PAIRS_PER_CHUNK)
        np.einsum(
            "pd,pd->p",
            encoded.queries[queries[part]],
            encoded.documents[documents[part]],
            out=scores[part],
        )
    return scores


def list_metrics(
    encoded: EncodedSet, lists: CandidateLists, scores: np.ndarray, num_grades: int
) -> dict[str, np.ndarray]:
    """Returns metric name -> `[lists]` float64, NaN where a query has no relevant document."""
    ties = encoded.tie_order[lists.document_rows]
    return per_query_metrics(ranked_grades(scores, lists.grades, lists.offsets, ties), num_grades)


def confusion_matrix(grades: np.ndarray, predicted: np.ndarray, num_grades: int) -> np.ndarray:
    """Counts pairs by true and predicted grade.

    Args:
        grades: `[pairs]` int.
        predicted: `[pairs]` int.
        num_grades: K.

    Returns:
        `[K, K]` int64; row: true grade, column: predicted grade.
    """
    cells = np.bincount(grades * num_grades + predicted, minlength=num_grades**2)
    return cells.reshape(num_grades, num_grades)
