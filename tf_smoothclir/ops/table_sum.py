"""Sums of the rows of a table by text: most of a training step.

Why they are here: TensorFlow's embedding lookup copies the rows before it adds them up, and its
gradient names the rows of all texts. Here rows are added up where they lie, and the gradient leaves
out texts without one: SOSL is flat inside the interval of a grade (Liu et al. 2020, eq. 2), where
more and more scores lie as the model learns. `python -m benchmarks.training` measures training,
`python -m benchmarks.profile` the share of this sum in a step and of the scores with a gradient.

When they may go: when a step with `segment_sum` over the rows of `tf.gather` is as fast.
"""

import tensorflow as tf

from tf_smoothclir.ops.row_sums import (
    pair_matrix,
    pair_product,
    segment_sum_by_segments,
    sums_at,
    sums_at_by_matrix,
    sums_at_by_segments,
    uses_products,
)
from tf_smoothclir.utils import devices

_OF_ALL_TEXTS, _OF_CHANGED_TEXTS = "TfSmoothclirTableSumOfAll", "TfSmoothclirTableSum"
_OF_DISTINCT = "TfSmoothclirTableSumOfDistinct"


def table_sum(
    table: tf.Variable,
    ids: tf.Tensor,
    texts: tf.Tensor,
    lengths: tf.Tensor,
    *,
    names_all_rows: bool = False,
) -> tf.Tensor:
    """Adds up rows of a table by text: `[texts, dim]`, in a graph, for training alone."""
    # TensorFlow cannot save it. `ids` and `texts` are `[tokens]`, `lengths` `[texts]`. The
    # gradient is sparse and names each row once: the rows of the texts whose own gradient is
    # not zero. No other row could change, unless the optimizer moves every row that is named
    # (`names_all_rows`). On a CPU, an id that is no row is an `InvalidArgumentError`; on a GPU,
    # nobody checks.
    gradient = _OF_ALL_TEXTS if names_all_rows else _OF_CHANGED_TEXTS
    return _summed(table, gradient, ids, texts, lengths)


def table_sum_of_distinct(
    table: tf.Variable,
    distinct: tf.Tensor,
    positions: tf.Tensor,
    texts: tf.Tensor,
    lengths: tf.Tensor,
) -> tf.Tensor:
    """Adds up rows as `table_sum` does, of tokens at `positions` of the `distinct` rows."""
    # The gradient names the rows of all texts, without another search for the distinct
    # ones.
    ids = tf.gather(distinct, positions)
    return _summed(table, _OF_DISTINCT, ids, texts, lengths, distinct, positions)


def _summed(table: tf.Variable, gradient: str, *given: tf.Tensor) -> tf.Tensor:
    """The sums of `ids`, `texts`, `lengths` and more inputs, with that gradient."""

    # A function, because a tape ignores the gradients that a graph overrides. A new one for each
    # graph, because it refers to the table and would keep it alive.
    @tf.function(autograph=False)
    def summed(ids, texts, lengths, *more):
        # Else TensorFlow copies a table that is read whole after updates of single rows.
        tf.raw_ops.DisableCopyOnRead(resource=table.handle)
        sums = sum_in_halves(_kernel, table.read_value(), ids, texts, lengths)
        with tf.compat.v1.get_default_graph().gradient_override_map({"IdentityN": gradient}):
            # IdentityN changes nothing; its inputs are what the gradient is computed from.
            inputs = [tf.stop_gradient(sums), table.handle, ids, texts, lengths, *more]
            sums, *_ = tf.raw_ops.IdentityN(input=inputs)
        return sums

    return summed(*given)


@tf.RegisterGradient(_OF_CHANGED_TEXTS)
def _gradient_of_changed_texts(operation, upstream, *_):
    _, table, ids, texts, lengths = operation.inputs
    has_gradient = tf.reduce_any(tf.not_equal(upstream, 0), axis=1)  # NaN is one
    ids, texts = _of_texts(has_gradient, texts, lengths, [ids, texts])
    return None, _gradient_of_table(table, ids, texts, upstream), None, None, None


@tf.RegisterGradient(_OF_ALL_TEXTS)
def _gradient_of_all_texts(operation, upstream, *_):
    _, table, ids, texts, _ = operation.inputs
    return None, _gradient_of_table(table, ids, texts, upstream), None, None, None


@tf.RegisterGradient(_OF_DISTINCT)
def _gradient_of_distinct(operation, upstream, *_):
    _, table, _, texts, _, distinct, positions = operation.inputs
    # The product writes each row once, however many words share it; on two cores it runs on both.
    kernel = sums_at_by_segments if devices.has_gpu() else sums_at_by_matrix
    values = kernel(positions, upstream, texts, tf.size(distinct))
    shape = tf.raw_ops.VariableShape(input=table)
    gradient = tf.IndexedSlices(values, distinct, shape)
    return None, gradient, None, None, None, None, None


def _gradient_of_table(table, ids, texts, upstream) -> tf.IndexedSlices:
    # Each row once, with the sum of the gradients of the texts that it occurs in.
    rows, positions = tf.unique(ids)
    values = sums_at(positions, upstream, texts, tf.size(rows))
    shape = tf.raw_ops.VariableShape(input=table)
    return tf.IndexedSlices(values, rows, shape)


def _of_texts(chosen: tf.Tensor, texts: tf.Tensor, lengths: tf.Tensor, tensors: list) -> list:
    """The parts of `tensors`, `[tokens]`, in the `chosen` texts, `[texts]` bool."""
    if devices.has_gpu():  # RaggedGather has no kernel there; this takes a little longer
        kept = tf.where(tf.gather(chosen, texts))[:, 0]
        return [tf.gather(tensor, kept) for tensor in tensors]
    # The tokens as ragged rows, one a text: whole texts are copied, not single tokens.
    splits = tf.concat([tf.zeros([1], lengths.dtype), tf.cumsum(lengths)], axis=0)
    numbers = tf.where(chosen)[:, 0]
    return [
        tf.raw_ops.RaggedGather(
            params_nested_splits=[splits],
            params_dense_values=tensor,
            indices=numbers,
            OUTPUT_RAGGED_RANK=1,
        ).output_dense_values
        for tensor in tensors
    ]


def sum_in_halves(kernel, rows, ids, texts, lengths):
    """Adds up `rows[ids]` by text by a kernel, both halves of the tokens in parallel."""
    # Independent, so that TensorFlow runs both at once. A text that the cut divides gets a part of
    # its sum from each.
    half, number = tf.size(ids) // 2, tf.size(lengths)
    first, second = (
        kernel(rows, ids[part], texts[part], number) for part in (slice(half), slice(half, None))
    )
    return first + second


def sum_by_matrix(rows, ids, texts, number):
    """Adds up rows by the product with a sparse matrix; its gradient is not used."""
    matrix = pair_matrix(texts, ids, [number, tf.shape(rows)[0]], rows.dtype)
    return pair_product(ids, matrix, rows, number)


def _kernel(rows, ids, texts, number):
    kernel = sum_by_matrix if uses_products() else segment_sum_by_segments
    return kernel(rows, ids, texts, number)
