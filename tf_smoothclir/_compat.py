"""What differs between the supported stacks: which library computes the ranking metrics.

tensorflow-ranking 0.5.5 is imported where it is used, because that takes a second.
"""

from __future__ import annotations

import numpy as np


def list_metric(name: str, labels: np.ndarray, scores: np.ndarray, topn: int | None) -> np.ndarray:
    """Computes a ranking metric of each list with tensorflow-ranking.

    Args:
        name: "ndcg" (gain = grade, discount = log2(1 + rank)), "average_precision" or
            "reciprocal_rank" (both: relevant is label >= 1).
        labels: `[lists, length]` float32; -1 is padding.
        scores: `[lists, length]` float32, no two of a list alike: tensorflow-ranking orders ties
            at random.
        topn: Only the first `topn` count; None for all.

    Returns:
        `[lists]` float32.
    """
    from tensorflow_ranking.python import metrics_impl

    metric = {
        "ndcg": lambda: metrics_impl.NDCGMetric(None, topn, gain_fn=_gain_is_grade),
        "average_precision": lambda: metrics_impl.MeanAveragePrecisionMetric(None, topn),
        "reciprocal_rank": lambda: metrics_impl.MRRMetric(None, topn),
    }[name]()
    values, _ = metric.compute(labels, scores, None, mask=labels >= 0)
    return values.numpy()[:, 0]


def _gain_is_grade(labels):
    return labels
