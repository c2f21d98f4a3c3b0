"""Grades that scores predict."""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf


def predicted_grades(scores, cut_points: Sequence[float]) -> tf.Tensor:
    """Number of cut points below each score: int32, the shape of `scores`.

    A score exactly on a cut point belongs to the lower grade. With the thresholds of SOSL as cut
    points, that is the grade for which its loss is zero.
    """
    scores = tf.convert_to_tensor(scores)
    above = scores[..., tf.newaxis] > tf.constant(cut_points, scores.dtype)
    return tf.reduce_sum(tf.cast(above, tf.int32), axis=-1)


def check_grades(grades, num_grades: int | None) -> tf.Tensor:
    """Grades after checking them, in a graph too, where nothing uses them before."""
    if num_grades is None:
        return grades
    highest = tf.reduce_max(tf.cast(grades, tf.int32))
    message = (
        f"grades: a grade is above {num_grades - 1}, the highest that this loss has. Give the loss"
        " one more threshold for each further grade, or correct the grades."
    )
    checked = tf.debugging.assert_less(highest, num_grades, message=message)
    # In a graph, no step may begin with grades that turn its weights into NaN.
    with tf.control_dependencies([] if checked is None else [checked]):
        return tf.identity(grades)


def hit_grades(scores, of_scores: Sequence[float], of_shares: Sequence[float]) -> tf.Tensor:
    """The grades of hits: int32, the shape of `scores`.

    A hit has the lower one of two grades: that of its score, and that of its share of the score of
    the first hit. The second one knows how much worse than the best a document is; the first one
    keeps the best of nothing good from having a high grade.

    Args:
        scores: `[..., hits]` float, best first; the first hits of a ranking.
    """
    scores = tf.convert_to_tensor(scores)
    grades = predicted_grades(scores, of_scores)
    if not of_shares:
        return grades
    return tf.minimum(grades, predicted_grades(hit_shares(scores), of_shares))


def hit_shares(scores) -> tf.Tensor:
    """Scores divided by the first one, `[..., hits]`; 0 where that is not above 0."""
    scores = tf.convert_to_tensor(scores)
    return tf.math.divide_no_nan(scores, tf.nn.relu(scores[..., :1]))
