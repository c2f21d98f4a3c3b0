"""Gradients of a worker as one message of numbers, and the gradient of all workers from these.

A message is int32, bit by bit what it stands for, so that one collective carries all: pairs, weight
and loss of the batch, the number of rows of each sparse gradient, then each gradient, of the sparse
ones the rows first.
"""

from __future__ import annotations

from collections.abc import Sequence

import tensorflow as tf

from tf_smoothclir.optimizers.gradients import each_row_once


def pack(gradients: Sequence, loss: tf.Tensor, pairs: tf.Tensor, weight: tf.Tensor) -> tf.Tensor:
    """Returns the message of a worker, `[n]` int32; `Workers.exchanged` has the arguments."""
    head = [pairs, weight, tf.bitcast(loss, tf.int32)]
    head += [tf.size(gradient.indices) for gradient in gradients if _is_sparse(gradient)]
    parts = [tf.stack(head)]
    for gradient in gradients:
        if _is_sparse(gradient):
            parts.append(tf.cast(gradient.indices, tf.int32))
            gradient = gradient.values
        parts.append(tf.reshape(tf.bitcast(gradient, tf.int32), [-1]))
    return tf.concat(parts, axis=0)


def unpack(messages: tf.Tensor, like: Sequence, number: int) -> tuple[list, tf.Tensor, tf.Tensor]:
    """Returns the gradients, the loss and the pairs of all batches as if they were one.

    Args:
        messages: `[n]` int32, of all workers one after the other.
        like: Gradients of one of them.
        number: How many there are.
    """
    reader = _Reader(messages)
    workers = [_read(reader, like) for _ in range(number)]
    total = tf.cast(tf.add_n([worker["weight"] for worker in workers]), tf.float32)
    shares = [tf.cast(worker["weight"], tf.float32) / total for worker in workers]
    gradients = []
    for place, gradient in enumerate(like):
        values = [worker["values"][place] * share for worker, share in zip(workers, shares)]
        if not _is_sparse(gradient):
            gradients.append(tf.add_n(values))
            continue
        rows = tf.concat([worker["rows"][place] for worker in workers], axis=0)
        rows = tf.cast(rows, gradient.indices.dtype)
        joined = tf.IndexedSlices(tf.concat(values, axis=0), rows, gradient.dense_shape)
        gradients.append(each_row_once(joined))
    loss = tf.add_n([worker["loss"] * share for worker, share in zip(workers, shares)])
    return gradients, loss, tf.add_n([worker["pairs"] for worker in workers])


def _read(reader: _Reader, like: Sequence) -> dict:
    """Returns what one worker has packed."""
    pairs, weight, loss = tf.unstack(reader.take(3), num=3)
    sizes = [reader.take(1)[0] if _is_sparse(gradient) else None for gradient in like]
    rows, values = [], []
    for gradient, size in zip(like, sizes):
        rows.append(None if size is None else reader.take(size))
        shape = gradient.shape if size is None else [size, *gradient.values.shape[1:]]
        numbers = reader.take(tf.reduce_prod(shape))
        values.append(tf.reshape(tf.bitcast(numbers, tf.float32), shape))
    return {
        "pairs": pairs,
        "weight": weight,
        "loss": tf.bitcast(loss, tf.float32),
        "rows": rows,
        "values": values,
    }


class _Reader:
    """Takes numbers from the front."""

    def __init__(self, numbers: tf.Tensor):
        self._numbers = numbers
        self._begin = 0

    def take(self, size) -> tf.Tensor:
        end = self._begin + size
        taken, self._begin = self._numbers[self._begin : end], end
        return taken


def _is_sparse(gradient) -> bool:
    return isinstance(gradient, tf.IndexedSlices)
