"""Adagrad for sparse gradients, in one fused kernel."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import Optimizer, tf_variable
from tf_smoothclir.ops.row_updates import RowAdagrad
from tf_smoothclir.optimizers.sparse_optimizer import SparseOptimizer


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
