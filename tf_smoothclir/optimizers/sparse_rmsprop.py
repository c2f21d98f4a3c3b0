"""Adagrad and RMSprop for sparse gradients, both in the fused kernel of Adagrad."""

import math

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import Optimizer, tf_variable
from tf_smoothclir.ops.row_updates import RowAdagrad, take_off_rows
from tf_smoothclir.optimizers.gradients import scaled
from tf_smoothclir.optimizers.sparse_optimizer import SparseOptimizer

# The accumulators grow by this factor before they are scaled down: small enough that neither a
# large gradient overflows float32 nor a small one vanishes.
_LARGEST_SCALE = 1e12


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class SparseAdagrad(SparseOptimizer, Optimizer):
    """Adagrad (Duchi et al. 2011) in one fused kernel: A <- A + g²,  w <- w - rate g / sqrt(A).

    The sums of squares begin at 0. Keras begins at 0.1, which hides the gradients of a mean over
    thousands of words: they are of the order of 1e-6 or smaller.

    Args:
        learning_rate: Step size, a number or a schedule.
        epsilon: Added to the root, against a division by 0.
        **kwargs: Of `SparseOptimizer` and of the Keras optimizer.
    """

    def __init__(self, learning_rate=0.4, epsilon: float = 1e-7, name="SparseAdagrad", **kwargs):
        super().__init__(learning_rate=learning_rate, name=name, **kwargs)
        self.epsilon = epsilon

    def build(self, var_list):
        """Creates an accumulator for each variable."""
        super().build(var_list)
        if not hasattr(self, "_accumulators"):
            self._accumulators = [
                self.add_variable_from_reference(variable, "accumulator") for variable in var_list
            ]
            self._row_updates = [
                RowAdagrad(tf_variable(variable), tf_variable(accumulator))
                for variable, accumulator in zip(var_list, self._accumulators)
            ]
            self._built = True

    def update_rows(self, gradient, variable, rate):
        self.apply_adagrad(gradient, variable, tf.cast(rate, variable.dtype), self.epsilon)

    def apply_adagrad(self, gradient, variable: tf.Variable, rate, epsilon) -> None:
        """Applies one step of Adagrad with this rate and epsilon, in the fused kernel."""
        if isinstance(gradient, tf.IndexedSlices):
            self._row_updates[self.position(variable)](gradient, rate, epsilon)
        else:
            tf.raw_ops.ResourceApplyAdagradV2(
                var=variable.handle,
                accum=self.slot(self._accumulators, variable).handle,
                lr=rate,
                epsilon=epsilon,
                grad=gradient,
            )

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "epsilon": self.epsilon}


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class SparseRMSprop(SparseAdagrad):
    """RMSprop with Adam's bias correction, which is exactly Adam without momentum (beta_1 = 0).

        v <- rho v + (1 - rho) g²,  w <- w - rate sqrt(1 - rho^step) g / (sqrt(v) + epsilon)

    It is not lazy: v decays in every row at every step, and rows without a gradient do not move in
    Adam without momentum either. Yet a step costs no more than one of Adagrad. The optimizer keeps
    v / (1 - rho) / rho^step, which gains g² / rho^step and so is Adagrad's accumulator of a growing
    gradient. Once in many steps it scales all accumulators down.

    Args:
        learning_rate: Step size, a number or a schedule.
        rho: Decay of the mean square in a step, inside (0, 1); Adam's beta_2.
        epsilon: Added to the root, as in Keras's Adam. It matters: the gradients of rare words are
            not much larger.
        **kwargs: Of `SparseOptimizer` and of the Keras optimizer.

    Raises:
        ValueError: `rho` is not inside (0, 1).
    """

    def __init__(
        self,
        learning_rate=0.01,
        rho: float = 0.999,
        epsilon=1e-7,
        name="SparseRMSprop",
        **kwargs,
    ):
        super().__init__(learning_rate, epsilon, name=name, **kwargs)
        if not 0 < rho < 1:
            raise ValueError(f"rho must be inside (0, 1), but is {rho!r}. The default is 0.999.")
        self.rho = rho
        self._period = math.ceil(math.log(_LARGEST_SCALE) / -math.log(rho))

    def update_rows(self, gradient, variable, rate):
        accumulator = self.slot(self._accumulators, variable)
        step = self.iterations % self._period  # since the last scaling
        tf.cond(
            step == 0,
            lambda: _scale_in_place(accumulator, self.rho**self._period),
            lambda: None,
        )
        wide, dtype = tf.float64, variable.dtype  # the powers need it
        scale = self.rho ** (-0.5 * tf.cast(step + 1, wide))
        gradient = scaled(gradient, tf.cast(scale, dtype))
        correction = 1 - self.rho ** tf.cast(self.iterations + 1, wide)
        rate = tf.cast(rate, wide) * tf.sqrt(correction / (1 - self.rho))
        epsilon = self.epsilon * scale / math.sqrt(1 - self.rho)
        self.apply_adagrad(gradient, variable, tf.cast(rate, dtype), tf.cast(epsilon, dtype))

    def get_config(self):
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "rho": self.rho}


def _scale_in_place(variable: tf.Variable, factor: float) -> None:
    """Multiplies a variable where it lies: a new value would be another table in memory."""
    if variable.shape.rank == 0:  # it has no rows
        variable.assign(variable * factor)
        return
    rows = tf.range(tf.raw_ops.VariableShape(input=variable.handle)[0])
    tf.raw_ops.ResourceScatterMul(resource=variable.handle, indices=rows, updates=factor)


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
