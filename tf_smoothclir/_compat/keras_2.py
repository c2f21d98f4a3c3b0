"""Keras 2.15, the one of TensorFlow 2.15; see `keras_api` for the names."""

import tensorflow as tf
from tensorflow import keras

ONLY_FIRST_REPLICA = tf.VariableAggregation.ONLY_FIRST_REPLICA


def tf_variable(variable: tf.Variable) -> tf.Variable:
    """The variable itself."""
    return variable


def optimizer_variables(optimizer: keras.optimizers.Optimizer) -> list[tf.Variable]:
    """The number of steps, then the slots of each variable."""
    return list(optimizer.variables)


def make_loss_metric(model: keras.Model) -> None:
    """Creates the mean of the losses, hidden from Keras, which sees only its own losses as such."""
    vars(model)["mean_loss"] = keras.metrics.Mean(name="loss")


def loss_metric(model: keras.Model) -> keras.metrics.Mean:
    """The running mean of the loss."""
    return model.mean_loss


def share_of_replica(loss: tf.Tensor) -> tf.Tensor:
    """A mean loss as it is: Keras's models divide it by the number of replicas."""
    return loss


def metrics_container(model: keras.Model):
    """What holds the metrics that a model was compiled with; None without any."""
    return model.compiled_metrics


def metrics_with_loss(model: keras.Model, metrics: list) -> list:
    """The metrics of a model with that mean in place of Keras's own."""
    others = [metric for metric in metrics if metric.name != "loss"]
    return [model.mean_loss, *others] if "mean_loss" in vars(model) else others


def adopt_layer(model: keras.Model, name: str, layer: keras.layers.Layer | None) -> None:
    """Sets a layer, or None, as an attribute of a built model, which then has its weights."""
    setattr(model, name, layer)


class RowOptimizer:
    """Stands before a Keras optimizer among the bases of a class, which defines `update`."""

    def update_step(self, gradient, variable):
        """Updates one variable; Keras calls it."""
        self.update(gradient, variable, tf.convert_to_tensor(self.learning_rate))

    def update(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates a variable by a dense or a sparse gradient."""
        raise NotImplementedError

    def keras_update(self, gradient, variable: tf.Variable, rate: tf.Tensor) -> None:
        """Updates a variable as the Keras optimizer does."""
        super().update_step(gradient, variable)

    def position(self, variable: tf.Variable) -> int:
        """The place of a variable among the trained ones, from 0."""
        return self._index_dict[self._var_key(variable)]

    def _deduplicate_sparse_grad(self, grads):
        return grads  # `update` does


class Optimizer(RowOptimizer, keras.optimizers.Optimizer):
    """A Keras optimizer whose base knows the learning rate."""

    def __init__(self, learning_rate, name: str, weight_decay: float | None = None, **kwargs):
        # Keras's default, 0, would be subtracted from every entry of every variable at each step.
        super().__init__(name=name, weight_decay=weight_decay or None, **kwargs)
        self._learning_rate = self._build_learning_rate(learning_rate)

    def get_config(self):
        """The arguments of the constructor."""
        rate = self._serialize_hyperparameter(self._learning_rate)
        return {**super().get_config(), "learning_rate": rate}
