"""Keras 3 with TensorFlow as its back end; see `keras_api` for the names."""

from __future__ import annotations

import tensorflow as tf
from tensorflow import keras

ONLY_FIRST_REPLICA = "only_first_replica"


def tf_variable(variable: keras.Variable | tf.Variable) -> tf.Variable:
    """The variable inside one of Keras, whose operations would read all of it."""
    return variable.value if isinstance(variable, keras.Variable) else variable


def optimizer_variables(optimizer: keras.optimizers.Optimizer) -> list[tf.Variable]:
    """The number of steps, then the slots of each variable."""
    return [v.value for v in optimizer.variables if v is not optimizer.learning_rate]


def make_loss_metric(model: keras.Model) -> None:
    """Does nothing: Keras has created one."""


def loss_metric(model: keras.Model) -> keras.metrics.Mean:
    """The mean of the losses that Keras has created."""
    return model._loss_tracker


def share_of_replica(loss: tf.Tensor) -> tf.Tensor:
    """A mean loss divided by the number of replicas, whose gradients will be added."""
    return loss / tf.distribute.get_strategy().num_replicas_in_sync


def metrics_container(model: keras.Model):
    """What holds the metrics that a model was compiled with; None without any."""
    return model._compile_metrics


def metrics_with_loss(model: keras.Model, metrics: list) -> list:
    """The metrics of a model, which include the mean loss."""
    return metrics


def adopt_layer(model: keras.Model, name: str, layer: keras.layers.Layer | None) -> None:
    """Sets a layer, or None, as an attribute of a built model, which then has its weights."""
    # It removes a former layer, whose weights Keras would keep training.
    model._tracker.unlock()
    if getattr(model, name, None) is not None:
        model._tracker.untrack(getattr(model, name))
    setattr(model, name, layer)
    model._tracker.lock()


class RowOptimizer:
    """Stands before a Keras optimizer among the bases of a class, which defines `update`."""

    def update_step(self, gradient, variable, learning_rate):
        """Updates one variable; Keras calls it."""
        self.update(gradient, variable, tf.convert_to_tensor(learning_rate))

    def update(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates a variable by a dense or a sparse gradient."""
        raise NotImplementedError

    def keras_update(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates a variable as the Keras optimizer does."""
        super().update_step(gradient, variable, rate)

    def position(self, variable: tf.Variable) -> int:
        """The place of a variable among the trained ones, from 0."""
        return self._get_variable_index(variable)

    def _clip_gradients(self, grads):
        if self.global_clipnorm:  # Keras 3.15 cannot scale a sparse gradient
            return tf.clip_by_global_norm(grads, self.global_clipnorm)[0]
        return super()._clip_gradients(grads)


class Optimizer(RowOptimizer, keras.optimizers.Optimizer):
    """A Keras optimizer whose base knows the learning rate."""
