"""Ranking metrics of the stack of Keras 2, by tensorflow-ranking 0.5.5."""

from __future__ import annotations


def list_metric(name: str, labels, scores, topn: int | None):
    """A metric of each list, `[lists]`, in a graph too; no two scores may be equal."""
    # Labels are `[lists, length]` float32, -1 for padding. tensorflow-ranking orders ties
    # at random.
    from tensorflow_ranking.python import metrics_impl

    metric = {
        "ndcg": lambda: metrics_impl.NDCGMetric(None, topn, gain_fn=_gain_is_grade),
        "average_precision": lambda: metrics_impl.MeanAveragePrecisionMetric(None, topn),
        "reciprocal_rank": lambda: metrics_impl.MRRMetric(None, topn),
    }[name]()
    values, _ = metric.compute(labels, scores, None, mask=labels >= 0)
    return values[:, 0]


def _gain_is_grade(labels):
    return labels
