"""Rows of a `RaggedStore` in the graph, which maps them from disk."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.ragged_store import RaggedStore


def mapped_tensors(store: RaggedStore) -> tuple[tf.Tensor, tf.Tensor]:
    """`(values, offsets)` as tensors; the values stay on disk, mapped into memory."""
    if not len(store.values):
        return tf.constant(store.values, store.dtype), tf.constant(store.offsets)
    # DLPack shares arrays that may be written to, which a private mapping may: nothing reaches the
    # file. (`ImmutableConst`, which is made for this, reads all of it into memory.)
    values = np.memmap(store.path, store.dtype, mode="c")
    return tf.experimental.dlpack.from_dlpack(values.__dlpack__()), tf.constant(store.offsets)


def gather_rows(
    values: tf.Tensor, offsets: tf.Tensor, rows: tf.Tensor
) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
    """`[batch]` rows of a ragged store, by its `[all rows + 1]` int64 offsets, in the graph."""
    gathered = tf.raw_ops.RaggedGather(
        params_nested_splits=[offsets],
        params_dense_values=values,
        indices=rows,
        OUTPUT_RAGGED_RANK=1,
    )
    (splits,) = gathered.output_nested_splits
    lengths = tf.cast(splits[1:] - splits[:-1], tf.int32)
    return gathered.output_dense_values, lengths, row_numbers(lengths)


def row_numbers(lengths: tf.Tensor) -> tf.Tensor:
    """`[sum of lengths]` int32, the row of each value, given the `[rows]` int32 lengths.

    Several times faster than `tf.repeat`, which makes a matrix as wide as the longest row. But it
    runs on the CPU only, which suits input pipelines; models, on any device, use `tf.repeat`.
    """
    lengths, bits = tf.cast(lengths, tf.int64), tf.constant(32, tf.int64)
    # One range per row, of numbers whose upper halves are the row number.
    begins = tf.bitwise.left_shift(tf.range(tf.size(lengths, tf.int64)), bits)
    ranges = tf.ragged.range(begins, begins + lengths)
    return tf.cast(tf.bitwise.right_shift(ranges.flat_values, bits), tf.int32)
