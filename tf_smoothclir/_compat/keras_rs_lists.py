"""Ranking metrics of the stack of Keras 3, by keras-rs."""

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
