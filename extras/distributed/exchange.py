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
    own = tf.cast(weight, tf.float32)
    sums = reduce([*(_times(one, own) for one in (*gradients, *losses)), pairs, weight])
    *sums, all_pairs, total = sums
    share = 1 / tf.cast(total, tf.float32)
    means = [_times(one, share) for one in sums]
    of_gradients, of_losses = means[: len(gradients)], means[len(gradients) :]
    return [each_row_once(one) for one in of_gradients], of_losses, all_pairs, total


def _times(value: tf.Tensor | tf.IndexedSlices, factor: tf.Tensor):
    if isinstance(value, tf.IndexedSlices):
        return tf.IndexedSlices(value.values * factor, value.indices, value.dense_shape)
    return value * factor
