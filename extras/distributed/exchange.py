"""The gradient of all workers from those of each, by a sum over the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import tensorflow as tf

from tf_smoothclir.optimizers.gradients import each_row_once


def joint_gradients(
    reduce: Callable,
    gradients: Sequence,
    losses: Sequence[tf.Tensor],
    pairs: tf.Tensor,
    weight: tf.Tensor,
) -> tuple[list, list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """What `protocols.task.Exchange` returns, of the joint batch.

    Args:
        reduce: Sums tensors and `IndexedSlices` over the workers.
    """
    counts = [tf.cast(count, tf.float32) for count in (pairs, weight)]  # one sum has one dtype
    *sums, all_pairs, total = reduce(
        [*(_times(one, counts[1]) for one in (*gradients, *losses)), *counts]
    )
    means = [_times(one, 1 / total) for one in sums]
    of_gradients = map(_shaped_like, means, gradients)
    of_losses = means[len(gradients) :]
    all_pairs, total = tf.cast(all_pairs, pairs.dtype), tf.cast(total, weight.dtype)
    return [each_row_once(one) for one in of_gradients], of_losses, all_pairs, total


def _shaped_like(total: tf.Tensor | tf.IndexedSlices, own: tf.Tensor | tf.IndexedSlices):
    """A sum with the shape that is known of the gradient of a worker, which the sum loses."""
    if isinstance(own, tf.IndexedSlices):
        values = tf.ensure_shape(total.values, [None, *own.values.shape[1:]])
        rows = tf.ensure_shape(tf.cast(total.indices, own.indices.dtype), [None])
        return tf.IndexedSlices(values, rows, own.dense_shape)
    return tf.ensure_shape(total, own.shape)


def _times(value: tf.Tensor | tf.IndexedSlices, factor: tf.Tensor):
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(value.values * factor, value.indices, value.dense_shape)
    return value * factor
