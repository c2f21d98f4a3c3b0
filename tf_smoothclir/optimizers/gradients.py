"""Dense and sparse gradients: clipped, scaled, with each row once."""

import tensorflow as tf

from tf_smoothclir.ops.row_sums import sums_at


def each_row_once(gradient):
    """Adds up the values of equal rows of a sparse gradient; otherwise its norm would be wrong."""
    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    rows, positions = tf.unique(gradient.indices)
    values = sums_at(positions, gradient.values, tf.range(tf.size(positions)), tf.size(rows))
    return tf.IndexedSlices(values, rows, gradient.dense_shape)


def clipped(gradients: list, norm: tf.Tensor, limit: float) -> list:
    """Scales gradients down to a joint norm of `limit` if `norm`, their joint norm, is larger.

    Unlike `tf.clip_by_global_norm`, it costs nothing if the norm is smaller, the usual case.
    None, the gradient of a weight that the loss does not depend on, stays None.
    """
    present = [gradient for gradient in gradients if gradient is not None]
    values = tf.cond(
        norm > limit,
        lambda: [_values(scaled(gradient, limit / norm)) for gradient in present],
        lambda: [_values(gradient) for gradient in present],
    )
    values = iter(values)
    return [g if g is None else _with_values(g, next(values)) for g in gradients]


def scaled(gradient, factor: tf.Tensor):
    """Returns a gradient times `factor`."""
    return _with_values(gradient, _values(gradient) * factor)


def _with_values(gradient, values: tf.Tensor):
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def _values(gradient) -> tf.Tensor:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
