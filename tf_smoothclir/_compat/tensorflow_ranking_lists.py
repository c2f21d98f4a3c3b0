"""Ranking metrics and losses of the stack of Keras 2, by tensorflow-ranking 0.5.5."""

from __future__ import annotations

import numpy as np


def list_metric(name: str, labels: np.ndarray, scores: np.ndarray, topn: int | None) -> np.ndarray:
    """Computes a ranking metric of each list with tensorflow-ranking.

    Args:
        name: "ndcg" (gain = grade, discount = log2(1 + rank)), "average_precision" or
            "reciprocal_rank" (both: relevant is label >= 1).
        labels: `[lists, length]` float32; -1 is padding.
        scores: `[lists, length]` float32, no two of a list equal: tensorflow-ranking orders ties
            at random.
        topn: How many documents count from the top; None for all.

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


def list_losses(name: str, labels, scores):
    """Computes a differentiable loss of each list with tensorflow-ranking.

    Args:
        name: "softmax" (minus the sum of grade times log of the softmax), "approx_ndcg" (minus
            ApproxNDCG, gain 2^grade - 1; both are 0 for a list without a grade above 0),
            "pairwise_hinge" or "pairwise_logistic" (mean over the pairs of a list that differ in
            grade, 0 where there are none).
        labels: `[lists, length]` float32; -1 is padding.
        scores: `[lists, length]` float32, already divided by the temperature.

    Returns:
        `[lists]` float32.
    """
    import tensorflow as tf
    from tensorflow_ranking.python import losses_impl

    loss = {
        "softmax": losses_impl.SoftmaxLoss,
        "approx_ndcg": losses_impl.ApproxNDCGLoss,
        "pairwise_hinge": losses_impl.PairwiseHingeLoss,
        "pairwise_logistic": losses_impl.PairwiseLogisticLoss,
    }[name](name, temperature=1.0)
    if name == "pairwise_logistic":  # of equal scores, theirs has gradient 0 instead of -1/2
        loss._pairwise_loss = lambda differences: tf.math.softplus(-differences)
    losses, weights = loss.compute_per_list(labels, scores, None)
    # Pairwise losses are means already; their weight is the number of pairs.
    return losses if name.startswith("pairwise") else losses * weights
