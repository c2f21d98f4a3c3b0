"""RMSprop with one mean square for each row of a table."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import Optimizer
from tf_smoothclir.ops.row_updates import take_off_rows
from tf_smoothclir.optimizers.sparse_optimizer import SparseOptimizer


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class RowRMSprop(SparseOptimizer, Optimizer):
    """RMSprop with Adam's bias correction and a mean square for each row instead of each number.

        v <- rho v + (1 - rho) mean(g²),  w <- w - rate sqrt(1 - rho^step) g / (sqrt(v) + epsilon)

    where the mean is over the numbers of a row, so that all of them move at one pace. The state of
    a table is one number for a row, which saves the memory of a second table and most of the time
    of an update. (One accumulator for a row is what large embedding tables are trained with, such
    as the row-wise Adagrad of Naumov et al. 2019.) Of a variable of rank 1 or 0 each number is a
    row: there it is `SparseRMSprop`. As in that, v decays in every row at every step.

    Args:
        learning_rate: Step size, a number or a schedule.
        rho: Decay of the mean square in a step, inside (0, 1); Adam's beta_2.
        epsilon: Added to the root, as in Keras's Adam.
        **kwargs: Of `SparseOptimizer` and of the Keras optimizer.

    Raises:
        ValueError: `rho` is not inside (0, 1).
    """

    def __init__(
        self, learning_rate=0.01, rho: float = 0.999, epsilon=1e-7, name="RowRMSprop", **kwargs
    ):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        if not 0 < rho < 1:
            raise ValueError(f"rho must be inside (0, 1), but is {rho!r}. The default is 0.999.")
        self.rho = rho
        self.epsilon = epsilon

    def build(self, var_list):
        """Creates the mean squares of each variable."""
        super().build(var_list)
        if not hasattr(self, "_mean_squares"):
            self._mean_squares = [
                self.add_variable(
                    shape=(*variable.shape[:1], *[1] * (len(variable.shape) - 1)),
                    dtype=variable.dtype,
                    initializer="zeros",
                    name="mean_square",
                )
                for variable in var_list
            ]
            self._built = True

    def update_rows(self, gradient, variable, rate):
        of_rows, dtype = self.slot(self._mean_squares, variable), variable.dtype
        of_rows.assign(of_rows * self.rho)  # of every row: a number each, so this is cheap
        correction = 1 - self.rho ** tf.cast(self.iterations + 1, tf.float64)  # float32 cancels
        rate = tf.cast(tf.cast(rate, tf.float64) * tf.sqrt(correction), dtype)
        if isinstance(gradient, tf.IndexedSlices):
            # `[named rows, 1]` squares, `[named rows, dim]` values.
            rows, values = gradient.indices, gradient.values
            squares = tf.gather(of_rows, rows) + (1 - self.rho) * _mean_squares(values)
            of_rows.scatter_update(tf.IndexedSlices(squares, rows))
            take_off_rows(variable, rows, values * (rate / (tf.sqrt(squares) + self.epsilon)))
        else:
            squares = of_rows + (1 - self.rho) * _mean_squares(gradient)
            of_rows.assign(squares)
            variable.assign_sub(gradient * (rate / (tf.sqrt(squares) + self.epsilon)))

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "rho": self.rho, "epsilon": self.epsilon}


def _mean_squares(values: tf.Tensor) -> tf.Tensor:
    """The mean square of each row, `[rows, 1, ...]`; of rank 1 or 0, of each number."""
    if values.shape.rank < 2:
        return tf.square(values)
    axes = list(range(1, values.shape.rank))
    # In one kernel: the squares would be another table in memory.
    norms = tf.raw_ops.EuclideanNorm(input=values, axis=axes, keep_dims=True)
    return tf.square(norms) / np.prod(values.shape[1:], dtype=np.float32)
