"""Labels, weights and grades as users and Keras give them, and grades that scores predict."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf


def keras_mask(y_pred: Any) -> tf.Tensor | None:
    """The mask that Keras's layers passed on with the scores, if any; False is left out."""
    return getattr(y_pred, "_keras_mask", None)


def given_labels(y_true: Any, y_pred: Any) -> tf.Tensor:
    """Labels in the shape of the scores, up to a trailing 1; -1 where Keras's mask is False.

    Returns:
        int64 or floating.
    """
    labels, mask = checked_labels(y_true), keras_mask(y_pred)
    y_pred = tf.convert_to_tensor(y_pred)
    labels = _shaped_like(y_pred, labels)
    if mask is not None:
        mask = tf.cast(mask, tf.bool)
        mask = mask[(..., *[tf.newaxis] * (y_pred.shape.rank - mask.shape.rank))]
        labels = tf.where(mask, labels, tf.constant(-1, labels.dtype))
    if labels.dtype.is_floating:
        message = "y_true: a label is NaN or infinite. Give grades from 0 on, or -1 for padding"
        labels = tf.debugging.check_numerics(labels, message)
    return labels


def checked_labels(y_true: Any) -> tf.Tensor:
    """Labels that are numbers, int64 or floating."""
    if isinstance(y_true, tf.RaggedTensor):
        raise ValueError("y_true is ragged: give y_true.to_tensor(-1) and y_pred.to_tensor()")
    labels = tf.convert_to_tensor(y_true)
    if labels.dtype.is_floating:
        return labels
    if not labels.dtype.is_integer:
        raise ValueError(
            f"y_true holds {labels.dtype.name} values, but grades are numbers from 0 on, and -1 is"
            " padding: convert it, such as by y.astype(int)"
        )
    return tf.cast(labels, tf.int64)


def _shaped_like(scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The labels in the shape of the scores, which may differ in a trailing 1 only."""
    want, have = scores.shape, labels.shape
    if want.rank is None or have.rank is None:
        return tf.reshape(labels, tf.shape(scores))
    shorter, longer = sorted((want, have), key=len)
    message = f"y_true has shape {have} and y_pred {want}: give one label for each score"
    if not longer.is_compatible_with(shorter.concatenate([1] * (len(longer) > len(shorter)))):
        raise ValueError(message)
    if len(have) > len(want):
        labels = tf.squeeze(labels, axis=-1)
    elif len(have) < len(want):
        labels = labels[..., tf.newaxis]
    # TensorFlow takes out a reshape to a shape like [None], and one label would be that of all.
    checked = tf.debugging.assert_equal(tf.shape(labels), tf.shape(scores), message)
    return after(checked, labels)


def after(checked: tf.Operation | None, tensor: tf.Tensor) -> tf.Tensor:
    """A tensor that nothing uses before an assertion has held; None holds already."""
    with tf.control_dependencies([] if checked is None else [checked]):
        return tf.identity(tensor)


def weights_of_lists(
    labels: tf.Tensor, weights: Any, is_masked: bool
) -> tuple[tf.Tensor, tf.Tensor]:
    """Labels, and `[lists]` weights where `[lists, list_size]` were given.

    Keras 2 makes weights `[lists, list_size]` of a mask: a document of weight 0 is left out, and
    the others of a list have its weight. Weights of another shape stay as they are.

    Args:
        labels: `[lists, list_size]`; negative at padding.
        weights: As they were given.
        is_masked: Whether the labels know already which documents are left out.
    """
    weights = tf.cast(weights, tf.float32)
    per_document = weights.shape.rank == 2 and weights.shape[1] != 1
    if not (per_document and labels.shape.is_compatible_with(weights.shape)):
        return labels, weights
    if not is_masked:
        labels = tf.where(weights == 0, tf.constant(-1, labels.dtype), labels)
    real = labels >= 0
    highest = tf.reduce_max(tf.where(real, weights, weights.dtype.min), axis=1)
    lowest = tf.reduce_min(tf.where(real, weights, weights.dtype.max), axis=1)
    message = "sample_weight: documents of one list have different weights. Give one for each list"
    equal = tf.debugging.assert_less_equal(highest, lowest, message)
    return labels, after(equal, highest)


def broadcast_weights(weights: Any, losses: tf.Tensor) -> tf.Tensor:
    """The weights in the shape of the losses, of which they may have the leading axes."""
    weights = tf.cast(weights, losses.dtype)
    want, have = losses.shape, weights.shape
    if have.rank is None:
        missing = tf.ones([tf.maximum(tf.rank(losses) - tf.rank(weights), 0)], tf.int32)
        weights = tf.reshape(weights, tf.concat([tf.shape(weights), missing], axis=0))
    if want.rank is not None and have.rank is not None:
        if have.rank == want.rank + 1 and have[-1] == 1:
            weights = weights[..., 0]
        weights = weights[(..., *[tf.newaxis] * (want.rank - weights.shape.rank))]
        fits = [one in (1, None, n) or n is None for one, n in zip(weights.shape, want)]
        if len(weights.shape) != len(want) or not all(fits):
            raise ValueError(
                f"sample_weight has shape {have} and there are losses of shape {want}: give one "
                "weight for all, one for each loss (a list is one loss for a list loss), or one "
                "for each row of losses"
            )
    return tf.broadcast_to(weights, tf.shape(losses))


def floating(values: Any) -> tf.Tensor:
    """A tensor of floating numbers: float32 where there are others, such as whole ones."""
    values = tf.convert_to_tensor(values)
    return values if values.dtype.is_floating else tf.cast(values, tf.float32)


def predicted_grades(scores, cut_points: Sequence[float]) -> tf.Tensor:
    """Number of cut points below each score: int32, the shape of `scores`.

    A score exactly on a cut point belongs to the lower grade. With the thresholds of SOSL as cut
    points, that is the grade for which its loss is zero.
    """
    scores = floating(scores)
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
    return after(checked, grades)  # no step may begin with grades that make its weights NaN


def hit_grades(
    scores, of_scores: Sequence[float], of_shares: Sequence[float], factors=1.0
) -> tf.Tensor:
    """The grades of hits: int32, the shape of `scores`.

    A hit has the lower one of two grades: that of its score, and that of its share of the score of
    the first hit. The second one knows how much worse than the best a document is; the first one
    keeps the best of nothing good from having a high grade.

    Args:
        scores: `[..., hits]` float, best first; the first hits of a ranking.
        factors: Of scores, before `of_scores` are their cut points.
    """
    scores = tf.convert_to_tensor(scores)
    grades = predicted_grades(scores * factors, of_scores)
    if not of_shares:
        return grades
    return tf.minimum(grades, predicted_grades(hit_shares(scores), of_shares))


def hit_shares(scores) -> tf.Tensor:
    """Scores divided by the first one, `[..., hits]`; 0 where that is not above 0."""
    scores = tf.convert_to_tensor(scores)
    return tf.math.divide_no_nan(scores, tf.nn.relu(scores[..., :1]))
