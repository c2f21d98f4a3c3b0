"""Ranking metrics as Keras metrics, of candidate lists.

They are for a model whose output is `[lists, list_size]` scores, or a `TwoTower` that is fitted on
candidate lists ("list_lengths"), which then has no other metrics:
`model.compile(metrics=[sc.metrics.NDCG(5)])`. `y_true` are grades of the same shape, of which a
negative one is padding. Lists without a relevant document are left out. Of equal scores, the lower
grade counts as ranked first. Scores of another shape are a `ValueError`; a score that is not a
number makes the mean NaN.
"""

import math
from typing import Any

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.lists import list_metric
from tf_smoothclir.api.given import whole_number
from tf_smoothclir.losses import labels


class _ListMetric(keras.metrics.Mean):
    """Mean of a metric of candidate lists; see the module."""

    needs_lists = True  # so that a `TwoTower` gives it candidate lists as rows

    def __init__(self, k: int | None = None, name: str | None = None, **kwargs: Any):
        """Creates the metric."""
        self.k = None if k is None else whole_number(k, "k")
        default = type(self).__name__.lower() + ("" if k is None else f"_at_{k}")
        super().__init__(name=name or default, **kwargs)

    def update_state(self, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        """Adds lists.

        Args:
            y_true: `[lists, list_size]` grades; a negative one is padding.
            y_pred: `[lists, list_size]` scores; what Keras's mask leaves out is padding.
            sample_weight: `[lists]`, the weight of each list in the mean; or `[lists, list_size]`,
                as of a mask: a document of weight 0 is padding, the others of a list have one.
        """
        scores = tf.cast(y_pred, tf.float64)  # in which no two scores become one
        if scores.shape.rank != 2:
            raise ValueError(
                f"{self.name}: y_pred has shape {scores.shape}, but the metric needs whole lists,"
                " [lists, list_size]. Compile it into a model that scores lists, or give a TwoTower"
                " batches of candidate lists, with list_lengths."
            )
        grades = labels.given_labels(y_true, y_pred)
        if sample_weight is not None:
            is_masked = labels.keras_mask(y_pred) is not None
            grades, sample_weight = labels.weights_of_lists(grades, sample_weight, is_masked)
        grades = tf.cast(grades, tf.float32)
        ranked = _ranked(grades, scores)
        is_relevant = tf.reduce_any(ranked >= 1, axis=1)
        weights = tf.cast(is_relevant, tf.float32)
        if sample_weight is not None:
            weights *= labels.broadcast_weights(sample_weight, weights)
        unknown = tf.reduce_any(tf.math.is_nan(scores) & (grades >= 0), axis=1)
        values = tf.where(is_relevant, self._of_lists(ranked), 0)
        super().update_state(tf.where(unknown, math.nan, values), weights)

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The metric of each list, `[lists]`, of grades in the order of ranks; 0 pads."""
        raise NotImplementedError

    def get_config(self) -> dict[str, Any]:
        """The arguments of the constructor."""
        return {**super().get_config(), "k": self.k}


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class NDCG(_ListMetric):
    """Normalised discounted cumulative gain, linear in the grade, as a Keras metric.

        NDCG = Σ_i g_i / log2(1 + rank_i) / ideal, where "ideal" is the same sum for the best order

    Args:
        k: How many documents count from the top; None for all.
        name: Name in the history; "ndcg_at_5" for k = 5.
        **kwargs: Of the Keras metric.

    Raises:
        InputError: `k` is no whole number from 1 on.
    """

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The NDCG of each list."""
        return list_metric("ndcg", ranked, self.k)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class MRR(_ListMetric):
    """Reciprocal rank of the first relevant document (grade 1 or more), as a Keras metric.

    Args:
        k: Documents after this rank count as not found; None for no limit.
        name: Name in the history; "mrr_at_10" for k = 10.
        **kwargs: Of the Keras metric.

    Raises:
        InputError: `k` is no whole number from 1 on.
    """

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The reciprocal rank of each list."""
        return list_metric("reciprocal_rank", ranked, self.k)


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class Precision(_ListMetric):
    """Share of relevant documents (grade 1 or more) among the first `k`, as a Keras metric.

    Args:
        k: How many documents count from the top; None for all places of the list, padding included.
        name: Name in the history; "precision_at_5" for k = 5.
        **kwargs: Of the Keras metric.

    Raises:
        InputError: `k` is no whole number from 1 on.
    """

    def _of_lists(self, ranked: tf.Tensor) -> tf.Tensor:
        """The precision of each list."""
        depth = tf.shape(ranked)[1] if self.k is None else self.k
        counts = (ranked >= 1) & (tf.range(1, tf.shape(ranked)[1] + 1) <= depth)
        return tf.reduce_sum(tf.cast(counts, tf.float32), axis=1) / tf.cast(depth, tf.float32)


def _ranked(grades: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Grades in the order of scores, `[lists, list_size]`; padding is last, as 0."""
    # Stable sorts, the least important key first: grade from below, score, padding.
    keys = (grades, -scores, tf.cast(grades < 0, tf.float32))
    order = tf.broadcast_to(tf.range(tf.shape(grades)[1]), tf.shape(grades))
    for key in keys:
        sorted_by_key = tf.argsort(tf.gather(key, order, batch_dims=1), stable=True)
        order = tf.gather(order, sorted_by_key, batch_dims=1)
    return tf.nn.relu(tf.gather(grades, order, batch_dims=1))
