"""Grades that scores predict."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


def predicted_grades(scores, cut_points: Sequence[float]) -> tf.Tensor:
    """Returns how many cut points lie below each score: int32, the shape of `scores`.

    A score exactly on a cut point belongs to the lower grade. With the thresholds of SOSL as cut
    points, that is the grade for which its loss is zero.

    Args:
        scores: float, any shape.
        cut_points: K-1 rising numbers, compared in the type of the scores.
    """
    scores = tf.convert_to_tensor(scores)
    above = scores[..., tf.newaxis] > tf.constant(cut_points, scores.dtype)
    return tf.reduce_sum(tf.cast(above, tf.int32), axis=-1)
