"""Ranking metrics and losses of the stack of Keras 3, by keras-rs.

See `tensorflow_ranking_lists` for the arguments of both functions. keras-rs has no softmax loss and
no ApproxNDCG; they are written here as tensorflow-ranking defines them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable


def list_metric(name: str, labels, scores, topn: int | None):
    """Computes a ranking metric of each list, as in `tensorflow_ranking_lists`."""
    return _compiled_metric(name, topn)(labels, scores)


@functools.cache
def _compiled_metric(name: str, topn: int | None) -> Callable:
    """A metric as a graph: operation by operation, a validation would take 0.1 s longer."""
    import keras_rs
    import tensorflow as tf

    options = {"k": topn, "shuffle_ties": False}
    metric = {
        "ndcg": lambda: keras_rs.metrics.NDCG(gain_fn=_gain_is_grade, **options),
        "average_precision": lambda: keras_rs.metrics.MeanAveragePrecision(**options),
        "reciprocal_rank": lambda: keras_rs.metrics.MeanReciprocalRank(**options),
    }[name]()
    of_lists = tf.TensorSpec([None, None], tf.float32)

    @tf.function(input_signature=[of_lists, of_lists], autograph=False)
    def values(labels, scores):
        real = labels >= 0
        last = tf.reduce_min(scores, axis=1, keepdims=True) - 1
        found, _ = metric.compute_metric(
            y_true=tf.nn.relu(labels),
            y_pred=tf.where(real, scores, last),
            mask=real,
            sample_weight=tf.cast(real, tf.float32),
        )
        return found[:, 0]

    return values


def _gain_is_grade(labels):
    return labels


def pairwise_hinge_losses(labels, scores):
    """Computes the hinge loss of the pairs of each list, as in `tensorflow_ranking_lists`."""
    import keras_rs

    return _pairwise(keras_rs.losses.PairwiseHingeLoss(), labels, scores)


def pairwise_logistic_losses(labels, scores):
    """Computes the logistic loss of the pairs of each list, as in `tensorflow_ranking_lists`."""
    import keras_rs
    import tensorflow as tf

    loss = keras_rs.losses.PairwiseLogisticLoss()
    # Of equal scores, theirs has gradient 0 instead of -1/2.
    loss.pairwise_loss = lambda differences: tf.math.softplus(-differences)
    return _pairwise(loss, labels, scores)


def _pairwise(loss, labels, scores):
    import tensorflow as tf

    losses, is_pair = loss.compute_unreduced_loss(labels, scores)
    return tf.math.divide_no_nan(
        tf.reduce_sum(losses * is_pair, axis=[1, 2]), tf.reduce_sum(is_pair, axis=[1, 2])
    )


def softmax_losses(labels, scores):
    """Computes the softmax loss of each list, as in `tensorflow_ranking_lists`."""
    import tensorflow as tf

    grades = tf.nn.relu(labels)
    real_scores = tf.where(labels >= 0, scores, scores.dtype.min)
    return -tf.reduce_sum(grades * tf.nn.log_softmax(real_scores), axis=1)


def approx_ndcg_losses(labels, scores):
    """Computes minus ApproxNDCG of each list, as in `tensorflow_ranking_lists`."""
    import tensorflow as tf

    real = tf.cast(labels >= 0, scores.dtype)
    grades = tf.nn.relu(labels)
    # Divided by 2^highest, which cancels and would overflow from grade 128 on.
    highest = tf.reduce_max(grades, axis=1, keepdims=True)
    gains = real * (2 ** (grades - highest) - 2**-highest)
    # For each document, the sum over all documents, itself (1/2) included.
    is_before = tf.sigmoid(scores[:, tf.newaxis, :] - scores[:, :, tf.newaxis])
    ranks = tf.reduce_sum(is_before * real[:, tf.newaxis, :], axis=2) + 0.5
    found = tf.reduce_sum(gains / tf.math.log1p(ranks), axis=1)
    places = tf.range(1, tf.shape(labels)[1] + 1)
    best_gains = tf.sort(gains, direction="DESCENDING")
    best = tf.reduce_sum(best_gains / tf.math.log1p(tf.cast(places, gains.dtype)), axis=1)
    return -tf.math.divide_no_nan(found, best)
