"""Names of Keras that differ between the stacks, chosen for the one that is installed.

`keras_2` and `keras_3` define the same names, and say what each is.
"""

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat import ON_KERAS_3

if ON_KERAS_3:
    from tf_smoothclir._compat import keras_3 as _stack
else:
    from tf_smoothclir._compat import keras_2 as _stack

ONLY_FIRST_REPLICA = _stack.ONLY_FIRST_REPLICA
Optimizer = _stack.Optimizer
RowOptimizer = _stack.RowOptimizer
adopt_layer = _stack.adopt_layer
loss_metric = _stack.loss_metric
make_loss_metric = _stack.make_loss_metric
metrics_with_loss = _stack.metrics_with_loss
optimizer_variables = _stack.optimizer_variables
share_of_replica = _stack.share_of_replica
tf_variable = _stack.tf_variable


def tf_weights(layer: keras.layers.Layer) -> list[tf.Variable]:
    """The variables of a layer or model, trained ones first: one order on both stacks."""
    weights = (*layer.trainable_weights, *layer.non_trainable_weights)
    return [tf_variable(weight) for weight in weights]


def track_loss(model: keras.Model, loss: tf.Tensor, terms: tf.Tensor) -> None:
    """Adds the loss of a batch, a mean over so many terms, to the mean that `fit` shows."""
    replicas = tf.distribute.get_strategy().num_replicas_in_sync  # by which Keras divides it
    loss_metric(model).update_state(loss * replicas, sample_weight=terms)


def given_metrics(model: keras.Model) -> list:
    """The metrics that a model was compiled with, as they were given."""
    if (compiled := _stack.metrics_container(model)) is None:
        return []
    return tf.nest.flatten([compiled._user_metrics, compiled._user_weighted_metrics])
