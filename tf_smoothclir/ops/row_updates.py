"""Updates of some rows of a table, in the fastest kernel of each stack.

Why they are here: TensorFlow 2.21 is built so that kernels which update single rows take three to
six times as long as those of 2.15. Copying the rows, updating the copies whole and putting them
back is as fast there. `python -m benchmarks.stacks` measures training on both stacks, `python -m
benchmarks.profile` the share of the optimizer in a step.

When they may go: when `ResourceSparseApplyAdagradV2` and `ResourceScatterSub` of today's TensorFlow
are as fast as on 2.15. Then the kernels in place are enough.
"""

import tensorflow as tf

from tf_smoothclir._compat import ON_KERAS_3


class RowAdagradInPlace:
    """Adagrad of the rows that a sparse gradient names, in one kernel."""

    def __init__(self, table: tf.Variable, sums: tf.Variable):
        """Takes a table, `[rows, dim]`, and its sums of squares, of the same shape."""
        self._fixed = {"var": table.handle, "accum": sums.handle}

    def __call__(self, gradient: tf.IndexedSlices, rate: tf.Tensor, epsilon: tf.Tensor) -> None:
        """Adds g² to the sums, takes rate · g / (√sum + epsilon) off rows named once."""
        tf.raw_ops.ResourceSparseApplyAdagradV2(
            **self._fixed, lr=rate, epsilon=epsilon, grad=gradient.values, indices=gradient.indices
        )


class RowAdagradOfCopies:
    """Adagrad in the kernel for whole tables, on copies of the rows, which are then put back."""

    def __init__(self, table: tf.Variable, sums: tf.Variable):
        """Takes a table, `[rows, dim]`, and its sums of squares, of the same shape."""
        self._originals = (table, sums)
        # Of any number of rows: variables, because the kernel updates nothing else.
        none = tf.zeros([0, *table.shape[1:]], table.dtype)
        self._copies = [
            tf.Variable(none, shape=[None, *table.shape[1:]], trainable=False) for _ in range(2)
        ]

    def __call__(self, gradient: tf.IndexedSlices, rate: tf.Tensor, epsilon: tf.Tensor) -> None:
        """Updates the rows as `RowAdagradInPlace` does."""
        rows = gradient.indices
        for original, copy in zip(self._originals, self._copies):
            copy.assign(_read(original, rows))
        table, sums = self._copies
        tf.raw_ops.ResourceApplyAdagradV2(
            var=table.handle, accum=sums.handle, lr=rate, epsilon=epsilon, grad=gradient.values
        )
        for original, copy in zip(self._originals, self._copies):
            original.scatter_update(tf.IndexedSlices(copy.read_value(), rows))


_READING = {"ResourceGather", "ReadVariableOp", "VariableShape"}


def _read(table: tf.Variable, rows: tf.Tensor) -> tf.Tensor:
    """Rows of a table; in a graph that has read them for the model, without a second, slow read."""
    if tf.is_symbolic_tensor(rows):
        # Backwards from the update: the read of these rows, unless something may have written
        # to the table after it.
        named = rows.op.inputs[0] if rows.op.type == "Reshape" else rows  # by the gradient
        handle = named.graph.capture(table.handle)
        for operation in reversed(named.graph.get_operations()):
            if not any(given is handle for given in operation.inputs):
                continue
            if operation.type == "ResourceGather" and operation.inputs[1] is named:
                return tf.reshape(operation.outputs[0], [-1, *table.shape[1:]])
            if operation.type not in _READING:
                break  # it may have written
    return tf.gather(table, rows)


def take_off_rows_in_place(table: tf.Variable, rows: tf.Tensor, change: tf.Tensor) -> None:
    """Subtracts `[changed, dim]` from some rows of a table, none named twice, in one kernel."""
    table.scatter_sub(tf.IndexedSlices(change, rows))


def take_off_rows_of_copies(table, rows, change):
    """Subtracts from copies of the rows, which are then put back."""
    table.scatter_update(tf.IndexedSlices(_read(table, rows) - change, rows))


if ON_KERAS_3:
    RowAdagrad, take_off_rows = RowAdagradOfCopies, take_off_rows_of_copies
else:
    RowAdagrad, take_off_rows = RowAdagradInPlace, take_off_rows_in_place
