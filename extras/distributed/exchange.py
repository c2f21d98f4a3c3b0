"""Gradients of a worker as one message of numbers, and the gradient of all workers from these.

A message is int32; floats keep their bits. So one collective carries everything: pairs, weight and
losses of the batch, the number of rows of each sparse gradient, then each gradient. A sparse
gradient begins with its rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tensorflow as tf

from tf_smoothclir.optimizers.gradients import each_row_once


def pack(
    gradients: Sequence, losses: Sequence[tf.Tensor], pairs: tf.Tensor, weight: tf.Tensor
) -> tf.Tensor:
    """The message of a worker, `[n]` int32; the arguments are those of `Exchange`."""
    head = [pairs, weight, *(tf.bitcast(loss, tf.int32) for loss in losses)]
    head += [tf.size(gradient.indices) for gradient in gradients if _is_sparse(gradient)]
    parts = [tf.stack(head)]
    for gradient in gradients:
        if _is_sparse(gradient):
            parts.append(tf.cast(gradient.indices, tf.int32))
            gradient = gradient.values
        parts.append(tf.reshape(tf.bitcast(gradient, tf.int32), [-1]))
    return tf.concat(parts, axis=0)


def unpack(
    messages: tf.Tensor, like: Sequence, num_losses: int, num_workers: int
) -> tuple[list, list[tf.Tensor], tf.Tensor, tf.Tensor]:
    """What `Exchange` returns, of the joint batch; `messages` are those of all workers."""
    reader = _Reader(messages)
    contents = [_read(reader, like, num_losses) for _ in range(num_workers)]
    total = tf.add_n([content.weight for content in contents])
    shares = [tf.cast(c.weight, tf.float32) / tf.cast(total, tf.float32) for c in contents]
    gradients = []
    for place, gradient in enumerate(like):
        values = [content.values[place] * share for content, share in zip(contents, shares)]
        if not _is_sparse(gradient):
            gradients.append(tf.add_n(values))
            continue
        rows = tf.concat([content.rows[place] for content in contents], axis=0)
        rows = tf.cast(rows, gradient.indices.dtype)
        joined = tf.IndexedSlices(tf.concat(values, axis=0), rows, gradient.dense_shape)
        gradients.append(each_row_once(joined))
    losses = [
        tf.add_n([content.losses[place] * share for content, share in zip(contents, shares)])
        for place in range(num_losses)
    ]
    return gradients, losses, tf.add_n([content.pairs for content in contents]), total


class _Content(NamedTuple):
    """What one message says; rows and values are by gradient, rows None for a dense one."""

    pairs: tf.Tensor
    weight: tf.Tensor
    losses: list[tf.Tensor]
    rows: list[tf.Tensor | None]
    values: list[tf.Tensor]


def _read(reader: _Reader, like: Sequence, num_losses: int) -> _Content:
    """Reads the next message."""
    pairs, weight, *losses = tf.unstack(reader.take(2 + num_losses), num=2 + num_losses)
    sizes = [reader.take(1)[0] if _is_sparse(gradient) else None for gradient in like]
    rows, values = [], []
    for gradient, size in zip(like, sizes):
        rows.append(None if size is None else reader.take(size))
        shape = _shape(gradient) if size is None else [size, *gradient.values.shape[1:]]
        numbers = reader.take(tf.reduce_prod(shape))
        values.append(tf.reshape(tf.bitcast(numbers, tf.float32), shape))
    return _Content(pairs, weight, [tf.bitcast(loss, tf.float32) for loss in losses], rows, values)


class _Reader:
    """Takes numbers from the front."""

    def __init__(self, numbers: tf.Tensor):
        self._numbers, self._begin = numbers, 0

    def take(self, size) -> tf.Tensor:
        end = self._begin + size
        taken, self._begin = self._numbers[self._begin : end], end
        return taken


def _shape(gradient: tf.Tensor) -> tf.TensorShape | tf.Tensor:
    """The shape of a dense gradient, which may be known only when the graph runs."""
    return gradient.shape if gradient.shape.is_fully_defined() else tf.shape(gradient)


def _is_sparse(gradient) -> bool:
    return isinstance(gradient, tf.IndexedSlices)
