"""Grades that scores predict."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


def predicted_grades(scores, thresholds: Sequence[float]) -> tf.Tensor:
    """Returns how many thresholds lie below each score: int32, the shape of `scores`.

    A score exactly on θ_y belongs to the lower grade, where SOSL is zero.

    Args:
        scores: float, any shape.
        thresholds: θ_1 < ... < θ_{K-1}, compared in the type of the scores.
    """
    scores = tf.convert_to_tensor(scores)
    above = scores[..., tf.newaxis] > tf.constant(thresholds, scores.dtype)
    return tf.reduce_sum(tf.cast(above, tf.int32), axis=-1)
