"""Sums of rows by segment and their gradients, in the fastest kernel of each stack.

On a GPU, both stacks use the kernels that add up single rows: its products with sparse matrices add
in no fixed order, so the same training would end a little differently each time.

Why they are here: TensorFlow 2.21 is built so that kernels which add up single rows take three to
six times as long as those of 2.15. Products with sparse matrices are as fast there, and stand in
their place. And the gradient that TensorFlow has for copied rows is sparse, which is slow to make
dense on both. `python -m benchmarks.stacks` measures training on both stacks, `python -m
benchmarks.profile` the share of these sums in a step.

When they may go: the products, when `tf.sparse.segment_sum` and its gradient on today's TensorFlow
are as fast as on 2.15; `take`, when the gradient of `tf.gather` by positions of a dense tensor is
dense.
"""

import functools

import tensorflow as tf

from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.utils import devices


def segment_sum(
    rows: tf.Tensor,
    positions: tf.Tensor,
    segments: tf.Tensor,
    number: tf.Tensor,
    *,
    training: bool | None = None,
) -> tf.Tensor:
    """Adds up rows, `[rows, dim]`, by segment: `[number, dim]`, 0 for a segment without pairs."""
    # Each pair adds a row of `positions`, `[pairs]`, to one of `segments`, `[pairs]`,
    # ascending. With `training`, the gradient is fast, and TensorFlow cannot save the graph.
    if not training:
        return _any_number_of_sums(rows, positions, segments, number)
    signature = _rows_like(rows), _numbers_like(positions), _numbers_like(segments), _SCALAR
    # In eager execution, a gradient cannot keep a sparse matrix.
    kernel = segment_sum_by_segments if tf.executing_eagerly() else segment_sum_kernel()
    summed = _with_own_gradient(kernel, *signature)
    return summed(rows, positions, segments, tf.cast(number, tf.int32))


def take(rows: tf.Tensor, positions: tf.Tensor, *, training: bool | None = None) -> tf.Tensor:
    """`rows[positions]`, with `sums_at` as its gradient in training: that of gather is slow."""
    if not training:
        return tf.gather(rows, positions)
    taken = _with_own_gradient(tf.gather, _rows_like(rows), _numbers_like(positions))
    return taken(rows, positions)


# Gradients are functions of the module, registered once: TensorFlow keeps a `tf.custom_gradient`
# and all that it refers to, such as the tables of a model, until the process ends.
_OWN_GRADIENTS = {
    "SparseSegmentSumWithNumSegments": "TfSmoothclirSegmentSum",
    "IdentityN": "TfSmoothclirProduct",
    "GatherV2": "TfSmoothclirTake",
}


_SCALAR = tf.TensorSpec([], tf.int32)


@functools.cache
def _with_own_gradient(operation, *signature):
    """An operation on tensors of these types, with its gradient from `_OWN_GRADIENTS`."""

    # The override takes place where the operation is added to a graph, so this needs a function.
    # One trace for all sizes, kept for the process: it refers to no table.
    @tf.function(autograph=False, input_signature=signature)
    def function(*tensors):
        with tf.compat.v1.get_default_graph().gradient_override_map(_OWN_GRADIENTS):
            return operation(*tensors)

    return function


def segment_sum_by_segments(rows, positions, segments, number):
    """Adds up rows by segment, as `segment_sum` does, in one kernel."""
    if devices.has_gpu():
        return _any_number_of_sums(rows, positions, segments, number)
    return tf.sparse.segment_sum(rows, positions, segments, num_segments=number)


def _any_number_of_sums(rows, positions, segments, number):
    # The kernel for GPUs refuses to make no sums at all.
    number = tf.convert_to_tensor(number)
    some = tf.maximum(number, 1)
    return tf.sparse.segment_sum(rows, positions, segments, num_segments=some)[:number]


def _rows_like(rows: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None, rows.shape[-1]], rows.dtype)


def _numbers_like(numbers: tf.Tensor) -> tf.TensorSpec:
    return tf.TensorSpec([None], numbers.dtype)


@tf.RegisterGradient(_OWN_GRADIENTS["SparseSegmentSumWithNumSegments"])
def _gradient_of_segment_sum(operation, upstream):
    rows, positions, segments, _ = operation.inputs
    return sums_at(positions, upstream, segments, tf.shape(rows)[0]), None, None, None


@tf.RegisterGradient(_OWN_GRADIENTS["GatherV2"])
def _gradient_of_take(operation, upstream):
    rows, positions, _ = operation.inputs
    of_each = tf.range(tf.size(positions))
    return sums_at(positions, upstream, of_each, tf.shape(rows)[0]), None, None


def sums_at_by_segments(
    positions: tf.Tensor, values: tf.Tensor, rows: tf.Tensor, size: tf.Tensor
) -> tf.Tensor:
    """Adds up rows at given positions, `[size, dim]`, in the gradient kernel of a segment sum."""
    # Each pair adds a row of `values`, by `rows`, `[pairs]`, ascending, to one of `positions`,
    # `[pairs]`.
    # Without pairs, the kernel returns uninitialised memory.
    return _zeros_without(
        positions,
        values,
        size,
        lambda: tf.raw_ops.SparseSegmentSumGrad(
            grad=values, indices=positions, segment_ids=rows, output_dim0=size
        ),
    )


def sums_at_by_matrix(positions, values, rows, size):
    """Adds up rows at given positions by the product with a sparse matrix."""
    matrix = pair_matrix(rows, positions, [tf.shape(values)[0], size], values.dtype)
    return pair_product(positions, _transposed(matrix, values.dtype), values, size)


def _zeros_without(pairs, values, size, compute) -> tf.Tensor:
    """`compute()`, or zeros if there are no pairs."""
    zeros = functools.partial(tf.zeros, [size, values.shape[-1]], values.dtype)
    return tf.cond(tf.size(pairs) > 0, compute, zeros)


def pair_product(positions, matrix, values, size) -> tf.Tensor:
    """Multiplies the matrix of some pairs, or its transpose, by `values`."""
    return _zeros_without(
        positions, values, size, lambda: tf.raw_ops.SparseMatrixMatMul(a=matrix, b=values)
    )


def _transposed(matrix, dtype):
    # The product's own option to transpose takes three times as long.
    return tf.raw_ops.SparseMatrixTranspose(input=matrix, type=dtype)


def pair_matrix(segments, positions, shape, dtype):
    """Returns the sparse matrix with a one for each pair, at `[segment, position]`."""
    # TensorFlow crashes on a matrix without entries: a dummy, which is not used, takes its place.
    segments, positions, shape = tf.cond(
        tf.size(segments) > 0,
        lambda: (segments, positions, shape),
        lambda: (tf.zeros([1], segments.dtype), tf.zeros([1], positions.dtype), [1, 1]),
    )
    # Both numbers of a pair as halves of one int64, the segment in the lower half, which bitcast
    # puts first: `[pairs, 2]` int32 in half the time of tf.stack.
    halves = tf.cast(positions, tf.int64) * (1 << 32) + tf.cast(segments, tf.int64)
    return tf.raw_ops.SparseTensorToCSRSparseMatrix(
        indices=tf.cast(tf.bitcast(halves, tf.int32), tf.int64),
        values=tf.ones(tf.shape(positions), dtype),
        dense_shape=tf.cast(shape, tf.int64),
    )


def segment_sum_by_matrix(rows, positions, segments, number):
    """Sums rows by segment by a sparse matrix, which its gradient uses again."""
    matrix = pair_matrix(segments, positions, [number, tf.shape(rows)[0]], rows.dtype)
    sums = pair_product(positions, matrix, tf.stop_gradient(rows), number)
    # The rows stand behind a stop_gradient, so none flows through the product: the gradient of this
    # operation is that of all that comes before, and its inputs keep the matrix for it.
    sums, *_ = tf.raw_ops.IdentityN(input=[sums, rows, matrix, positions])
    return sums


@tf.RegisterGradient(_OWN_GRADIENTS["IdentityN"])
def _gradient_of_product(operation, upstream, *_):
    _, rows, matrix, positions = operation.inputs
    transposed = _transposed(matrix, upstream.dtype)
    return None, pair_product(positions, transposed, upstream, tf.shape(rows)[0]), None, None


def uses_products() -> bool:
    """Whether products with sparse matrices add up rows in training."""
    return not devices.has_gpu() if ON_KERAS_3 else False


def segment_sum_kernel():
    """The kernel that adds up rows by segment in training."""
    return segment_sum_by_matrix if uses_products() else segment_sum_by_segments


def sums_at(positions, values, rows, size):
    """Adds up rows at given positions, as `sums_at_by_segments` does, in the fastest kernel."""
    kernel = sums_at_by_matrix if uses_products() else sums_at_by_segments
    return kernel(positions, values, rows, size)
