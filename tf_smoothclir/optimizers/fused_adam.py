"""Adam in TensorFlow's fused kernel."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import RowOptimizer, tf_variable


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
