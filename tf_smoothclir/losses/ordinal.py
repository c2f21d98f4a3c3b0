"""Ordinal losses: the distance of a document's score from the interval of its grade.

Grades are 0..K-1 here and 1..K in Liu et al., "Cross-Lingual Document Retrieval with Smooth
Learning", 2020: grade g is y = g + 1 there. Grade g has the segment of scores from θ_g to θ_{g+1},
with θ_0 = -1 and θ_K = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import tensorflow as tf

from tf_smoothclir.losses.arguments import check_thresholds
from tf_smoothclir.losses.base import RankingLoss


class OrdinalLoss(RankingLoss):
    """A loss of each score in [-1, 1] against its grade 0..K-1; scores may have any shape.

    A fractional label is rounded down. A label above K-1 makes the loss NaN, so that the mistake
    shows at once and on every device. float64 scores have a float64 loss.

    Args:
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    @property
    def num_grades(self) -> int:
        raise NotImplementedError

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each score.

        Args:
            y_true: Grades, int32 in 0..K in the shape of `y_pred`; K must give NaN.
            y_pred: Scores, float32 or float64 of any shape.
        """
        raise NotImplementedError

    def masked_losses(self, labels, scores):
        padding = labels < 0
        labels = tf.minimum(labels, tf.cast(self.num_grades, labels.dtype))  # or int32 overflows
        grades = tf.cast(tf.maximum(labels, 0), tf.int32)
        # Scores of padding are replaced here and their losses later: else a NaN would reach the
        # gradient although the value is masked.
        return self.call(grades, tf.where(padding, tf.zeros_like(scores), scores)), padding


class ThresholdLoss(OrdinalLoss):
    """An `OrdinalLoss` whose grades are the segments between thresholds.

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("thresholds",)

    def __init__(self, thresholds: Sequence[float] = (0.2, 0.7), **kwargs):
        super().__init__(**kwargs)
        self._thresholds = check_thresholds("thresholds", thresholds)

    @property
    def thresholds(self) -> tuple[float, ...]:
        return self._thresholds

    @property
    def num_grades(self) -> int:
        return len(self._thresholds) + 1

    def get_config(self):
        return {**super().get_config(), "thresholds": list(self._thresholds)}


def by_grade(grades: tf.Tensor, values: Sequence[float] | tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns `values[grade]` for each grade, NaN for grade K."""
    if tf.is_tensor(values):
        return tf.gather(tf.concat([values, tf.constant([math.nan], dtype)], axis=0), grades)
    return tf.gather(tf.constant((*values, math.nan), dtype), grades)


def squared_excess(grades: tf.Tensor, scores: tf.Tensor, lower, upper) -> tf.Tensor:
    """Returns the squared distance of each score to the interval of its grade.

    Args:
        grades: int32 in 0..K; K gives NaN.
        scores: The same shape.
        lower: `[K]` floats or a tensor, where the interval of each grade begins.
        upper: The same, where it ends.
    """
    above = tf.nn.relu(scores - by_grade(grades, upper, scores.dtype))
    below = tf.nn.relu(by_grade(grades, lower, scores.dtype) - scores)
    return tf.square(above) + tf.square(below)
