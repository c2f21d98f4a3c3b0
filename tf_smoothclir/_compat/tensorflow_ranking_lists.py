"""Ranking metrics and losses of the stack of Keras 2, by tensorflow-ranking 0.5.5."""

from __future__ import annotations


def list_metric(name: str, labels, scores, topn: int | None):
    """Computes a ranking metric of each list with tensorflow-ranking, in a graph too.

    Args:
        labels: `[lists, length]` float32; -1 is padding. Not empty.
        scores: `[lists, length]` float32, no two of a list equal: tensorflow-ranking orders ties
            at random.

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
    return values[:, 0]


def _gain_is_grade(labels):
    return labels


def softmax_losses(labels, scores):
    """Computes minus the sum of grade times log of the softmax, of each list.

    Differentiable, like the other losses here.

    Args:
        labels: `[lists, length]` float32; -1 is padding.
        scores: `[lists, length]` float32, divided by the temperature.

    Returns:
        `[lists]` float32; 0 for a list without a grade above 0.
    """
    from tensorflow_ranking.python import losses_impl

    return _listwise(losses_impl.SoftmaxLoss, labels, scores)


def approx_ndcg_losses(labels, scores):
    """Computes minus ApproxNDCG with the gain 2^grade - 1, of each list; as `softmax_losses`."""
    from tensorflow_ranking.python import losses_impl

    return _listwise(losses_impl.ApproxNDCGLoss, labels, scores)


def pairwise_hinge_losses(labels, scores):
    """Computes the mean hinge loss of the pairs that differ in grade, of each list.

    Arguments as of `softmax_losses`. 0 for a list without such pairs.
    """
    from tensorflow_ranking.python import losses_impl

    return _pairwise(losses_impl.PairwiseHingeLoss(None), labels, scores)


def pairwise_logistic_losses(labels, scores):
    """Computes the mean logistic loss of the same pairs; as `pairwise_hinge_losses`."""
    import tensorflow as tf
    from tensorflow_ranking.python import losses_impl

    loss = losses_impl.PairwiseLogisticLoss(None)
    # Of equal scores, theirs has gradient 0 instead of -1/2.
    loss._pairwise_loss = lambda differences: tf.math.softplus(-differences)
    return _pairwise(loss, labels, scores)


def _listwise(kind, labels, scores):
    losses, weights = kind(None, temperature=1.0).compute_per_list(labels, scores, None)
    return losses * weights


def _pairwise(loss, labels, scores):
    # These are means already; their weight is the number of pairs.
    return loss.compute_per_list(labels, scores, None)[0]
