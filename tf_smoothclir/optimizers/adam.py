"""Adam: for all rows in TensorFlow's fused kernel, and for the rows that a gradient names."""

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import RowOptimizer, tf_variable
from tf_smoothclir.ops.row_updates import take_off_rows
from tf_smoothclir.optimizers.sparse_optimizer import SparseOptimizer


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class FusedAdam(RowOptimizer, keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015), every row of a table at every step, as Keras's.

    One kernel reads and writes a table and its moments once; Keras's Adam makes several passes and
    copies. The arguments are those of `keras.optimizers.Adam`.
    """

    def update(self, gradient, variable, rate):
        """Updates all rows, those that a sparse gradient does not name too."""
        if self.amsgrad:
            self.keras_update(gradient, variable, rate)
            return
        if isinstance(gradient, tf.IndexedSlices):  # adds up the values of equal rows
            rows = gradient.indices[:, tf.newaxis]
            shape = tf.shape(variable, rows.dtype)
            gradient = tf.scatter_nd(rows, gradient.values, shape)
        moment, velocity = (
            tf_variable(slots[self.position(variable)])
            for slots in (self._momentums, self._velocities)
        )
        dtype = variable.dtype
        step = tf.cast(self.iterations + 1, dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=moment.handle,
            v=velocity.handle,
            beta1_power=self.beta_1**step,
            beta2_power=self.beta_2**step,
            lr=tf.cast(rate, dtype),
            beta1=tf.cast(self.beta_1, dtype),
            beta2=tf.cast(self.beta_2, dtype),
            epsilon=tf.cast(self.epsilon, dtype),
            grad=gradient,
        )


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class LazyAdam(SparseOptimizer, keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015) that changes only the rows that a gradient names.

    With a sparse gradient, the moments of a row decay, and the row moves, only in steps that name
    it; the bias correction counts all steps. A step that names every row is exactly Adam. For this
    optimizer, the gradients of a `TwoTower` name all words of a batch, those with a gradient of
    zero too. With a dense gradient it is Adam. The arguments are those of `keras.optimizers.Adam`
    and `unique_rows` of `SparseOptimizer`.
    """

    names_all_rows = True

    def update_rows(self, gradient, variable, rate):
        if not isinstance(gradient, tf.IndexedSlices) or self.amsgrad:
            self.keras_update(gradient, variable, rate)
            return
        moment, velocity = (
            self.slot(slots, variable) for slots in (self._momentums, self._velocities)
        )
        step = tf.cast(self.iterations + 1, variable.dtype)
        # In Keras's order of operations, so that the results are equal to the last bit.
        rate = tf.cast(rate, variable.dtype) * tf.sqrt(1.0 - self.beta_2**step)
        rate /= 1.0 - self.beta_1**step

        rows, values = gradient.indices, gradient.values
        new_moment = _decayed(tf.gather(moment, rows), values, self.beta_1)
        new_velocity = _decayed(tf.gather(velocity, rows), tf.square(values), self.beta_2)
        change = rate * new_moment / (tf.sqrt(new_velocity) + self.epsilon)
        moment.scatter_update(tf.IndexedSlices(new_moment, rows))
        velocity.scatter_update(tf.IndexedSlices(new_velocity, rows))
        take_off_rows(variable, rows, change)


def _decayed(old: tf.Tensor, new: tf.Tensor, rate: float) -> tf.Tensor:
    return old + (new - old) * (1.0 - rate)
