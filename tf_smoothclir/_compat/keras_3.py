"""Keras 3 with TensorFlow as its back end; `keras_api` says what the names are."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

ONLY_FIRST_REPLICA = "only_first_replica"


def tf_variable(variable: keras.Variable | tf.Variable) -> tf.Variable:
    """Returns the variable that Keras's wraps; operations on that read all of it at once."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def optimizer_variables(optimizer: keras.optimizers.Optimizer) -> list[tf.Variable]:
    """Returns the number of steps, then the slots of each variable."""
    return [v.value for v in optimizer.variables if v is not optimizer.learning_rate]


def make_loss_metric(model: keras.Model) -> None:
    """Does nothing: Keras has made one."""
    del model


def loss_metric(model: keras.Model) -> keras.metrics.Mean:
    """Returns the mean of the losses that Keras has made."""
    return model._loss_tracker


def metrics_with_loss(model: keras.Model, metrics: list) -> list:
    """Returns the metrics of a model, of which the mean loss is one."""
    del model
    return metrics


def adopt_layer(model: keras.Model, name: str, layer: keras.layers.Layer | None) -> None:
    """Makes a layer, or none, an attribute of a built model, which has its weights then.

    A former one goes: Keras would keep its weights among those that are trained.
    """
    model._tracker.unlock()
    if getattr(model, name, None) is not None:
        model._tracker.untrack(getattr(model, name))
    setattr(model, name, layer)
    model._tracker.lock()


def trace_for_devices(layer: keras.layers.LSTM) -> None:
    """Does nothing: the graphs of a layer hold the kernel of cuDNN only where there is a GPU."""
    del layer


class RowOptimizer:
    """Goes before a Keras optimizer among the bases; a subclass has `update`."""

    def update_step(self, gradient, variable, learning_rate):
        """Is what Keras calls."""
        self.update(gradient, variable, tf.convert_to_tensor(learning_rate))

    def update(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates a variable by a dense or a sparse gradient."""
        raise NotImplementedError

    def keras_update(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates it as the Keras optimizer does."""
        super().update_step(gradient, variable, rate)

    def position(self, variable: tf.Variable) -> int:
        """Returns which one of the trained variables it is, from 0."""
        return self._get_variable_index(variable)

    def _clip_gradients(self, grads):
        if self.global_clipnorm:  # Keras 3.15 cannot scale a sparse gradient
            return tf.clip_by_global_norm(grads, self.global_clipnorm)[0]
        return super()._clip_gradients(grads)


class Optimizer(RowOptimizer, keras.optimizers.Optimizer):
    """A Keras optimizer whose base knows the learning rate."""
