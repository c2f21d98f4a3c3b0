"""Softmax cross-entropy by grade: each relevant document against the documents of lower grades."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.listwise import ListwiseLoss


@register
class OrdinalSoftmaxLoss(ListwiseLoss):
    """Softmax cross-entropy of each relevant document among the documents of lower grades.

        ordinal_softmax(s, g) = Σ_i w^(max g - g_i) log(1 + Σ_j exp(s_j - s_i)),  s = r / T

    over the documents i with g_i > 0, and for each over the documents j with g_j < g_i. With
    grades 0 and 1, and one relevant document, it is the contrastive loss with in-batch negatives
    (van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding"). With
    more grades, `SoftmaxLoss` makes relevant documents rivals of each other, and many of a lower
    grade outweigh the best one. Here no document is pushed below one of its own or a lower grade.

    Value and gradient are 0 for a list of equal grades, or without a grade above 0.

        >>> loss = OrdinalSoftmaxLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # log(1 + exp(2 - 1))
        1.3133

    Args:
        temperature: T > 0 in units of the similarity.
        lower_grade_weight: w in [0, 1], the weight of a document relative to one of the next higher
            grade. The highest grade of a list counts 1.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("temperature", "lower_grade_weight")

    def __init__(self, temperature: float = 0.1, lower_grade_weight: float = 0.1, **kwargs):
        super().__init__(temperature, **kwargs)
        if not 0 <= lower_grade_weight <= 1:
            raise ValueError(
                f"lower_grade_weight must be in [0, 1], got {lower_grade_weight!r}: use 0.1"
            )
        self.lower_grade_weight = float(lower_grade_weight)

    def call(self, y_true, y_pred):
        grades = tf.cast(y_true, tf.int32)  # a fractional grade is rounded down
        highest = tf.reduce_max(grades, axis=1, keepdims=True)
        levels = tf.range(1 + tf.maximum(tf.reduce_max(grades), 0))[:, tf.newaxis]
        # [lists, levels]: how likely the documents below each grade are. None is below grade 0.
        is_lower = (grades >= 0)[:, tf.newaxis] & (grades[:, tf.newaxis] < levels)
        lower = tf.where(is_lower, y_pred[:, tf.newaxis], y_pred.dtype.min)
        lower = tf.gather(
            tf.reduce_logsumexp(lower, axis=2), tf.maximum(grades, 0), axis=1, batch_dims=1
        )
        powers = tf.pow(self.lower_grade_weight, tf.cast(levels[:, 0], y_pred.dtype))
        steps = tf.where(grades > 0, highest - grades, 0)
        weights = tf.where(grades > 0, tf.gather(powers, steps), 0.0)
        return tf.reduce_sum(weights * tf.nn.softplus(lower - y_pred), axis=1)

    def get_config(self):
        return {**super().get_config(), "lower_grade_weight": self.lower_grade_weight}
