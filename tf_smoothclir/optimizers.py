"""Optimizers whose cost follows the rows of a batch, not the size of the vocabulary."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class LazyAdam(keras.optimizers.Adam):
    """Adam (Kingma and Ba 2015) that leaves alone what a batch does not touch.

    For a sparse gradient, the moments of a row decay, and the row moves, only in steps that touch
    it; the bias correction counts all steps. A step in which every row is touched is exactly Adam.
    Dense gradients are Adam always. The arguments are those of `keras.optimizers.Adam`.
    """

    def update_step(self, gradient, variable):
        """Updates the rows that `gradient` names, each once."""
        if not isinstance(gradient, tf.IndexedSlices) or self.amsgrad:
            super().update_step(gradient, variable)
            return
        index = self._index_dict[self._var_key(variable)]
        moment, velocity = self._momentums[index], self._velocities[index]
        step = tf.cast(self.iterations + 1, variable.dtype)
        # In Keras's order of operations, so that the results are equal to the last bit.
        rate = tf.cast(self.learning_rate, variable.dtype) * tf.sqrt(1.0 - self.beta_2**step)
        rate /= 1.0 - self.beta_1**step

        rows, values = gradient.indices, gradient.values
        new_moment = _decayed(tf.gather(moment, rows), values, self.beta_1)
        new_velocity = _decayed(tf.gather(velocity, rows), tf.square(values), self.beta_2)
        change = rate * new_moment / (tf.sqrt(new_velocity) + self.epsilon)
        moment.scatter_update(tf.IndexedSlices(new_moment, rows))
        velocity.scatter_update(tf.IndexedSlices(new_velocity, rows))
        variable.scatter_sub(tf.IndexedSlices(change, rows))


def _decayed(old: tf.Tensor, new: tf.Tensor, rate: float) -> tf.Tensor:
    return old + (new - old) * (1.0 - rate)


OPTIMIZERS = {
    "lazy_adam": LazyAdam,
    "adam": keras.optimizers.Adam,
    "adagrad": keras.optimizers.Adagrad,
    "sgd": keras.optimizers.SGD,
}


def make_optimizer(
    name: str, learning_rate: float, clip_norm: float = 0.0
) -> keras.optimizers.Optimizer:
    """Returns an optimizer by name.

    Args:
        name: One of `OPTIMIZERS`.
        learning_rate: Step size (paper: 0.01 with Adam).
        clip_norm: Largest joint norm of all gradients of a step; 0 leaves them as they are.
    """
    return OPTIMIZERS[name](learning_rate=learning_rate, global_clipnorm=clip_norm or None)
