"""Ranking metrics of the stack of Keras 3, by keras-rs."""

import functools
from collections.abc import Callable


def list_metric(name: str, ranked, topn: int | None):
    """Computes a ranking metric of each list, as in `tensorflow_ranking_lists`."""
    return _compiled_metric(name, topn)(ranked)


@functools.cache
def _compiled_metric(name: str, topn: int | None) -> Callable:
    """A metric as a graph: operation by operation, a validation would take 0.1 s longer."""
    import keras_rs
    import tensorflow as tf

    options = {"k": topn, "shuffle_ties": False}
    metric = {
        "ndcg": lambda: keras_rs.metrics.NDCG(gain_fn=tf.identity, **options),
        "average_precision": lambda: keras_rs.metrics.MeanAveragePrecision(**options),
        "reciprocal_rank": lambda: keras_rs.metrics.MeanReciprocalRank(**options),
    }[name]()

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.float32)], autograph=False)
    def values(ranked):
        ones = tf.ones_like(ranked)
        scores = ones - tf.range(tf.shape(ranked)[1], dtype=tf.float32)
        found, _ = metric.compute_metric(ranked, scores, tf.cast(ones, tf.bool), ones)
        return found[:, 0]

    return values
