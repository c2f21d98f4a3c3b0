"""Training steps: many in one call of the graph."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import tensorflow as tf

from tf_smoothclir.ops.huge_pages import use_huge_pages
from tf_smoothclir.training.checkpoints import State, state_of
from tf_smoothclir.two_tower.model import TwoTower


class LocalSteps:
    """Steps of a model whose variables are all in this process.

    Attributes:
        state: These variables.
    """

    def __init__(self, model: TwoTower, exchange: Callable | None = None):
        """Takes a compiled, built model, and `Workers.exchanged` where workers train together."""
        self.state: State = state_of(model)
        self._train_steps = compile_steps(model)
        if exchange:
            model.exchange = exchange
            self._train_steps = one_by_one(self._train_steps)

    def begin(self) -> None:
        """Prepares the variables, whose values are those to begin with."""
        use_huge_pages([*self.state.weights, *self.state.optimizer])

    def are_finite(self) -> bool:
        """Returns whether all weights are."""
        for weight in self.state.weights:
            tf.raw_ops.DisableCopyOnRead(resource=weight.handle)  # or a table would be copied
        sums = [tf.reduce_sum(weight) for weight in self.state.weights if weight.dtype.is_floating]
        return all(map(np.isfinite, sums))

    def __call__(self, batches, number: tf.Tensor) -> list[tf.Tensor]:
        """Takes so many batches, with a step each.

        Returns:
            Losses, gradient norms and pairs of the batches, each `[steps]`.
        """
        return self._train_steps(batches, number)


def compile_steps(model: TwoTower) -> Callable:
    """Returns a graph function: iterator of batches, number -> losses, gradient norms, pairs.

    It runs Keras's `train_step` as `fit` does, but many times a call. Of each step come its loss,
    the norm of its gradient, and how many pairs its batch has.
    """
    # With it, the steps of a loop in the graph take three times as long on CPU (TensorFlow 2.15).
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    # Nothing in it needs AutoGraph, which would take five times as long as all other tracing.
    train_step = tf.autograph.experimental.do_not_convert(model.train_step)

    @tf.function
    def train_steps(batches, number):
        losses = tf.TensorArray(tf.float32, number)
        norms = tf.TensorArray(tf.float32, number)
        pairs = tf.TensorArray(tf.int32, number)
        for step in tf.range(number):
            logs = train_step(next(batches))
            losses = losses.write(step, logs["batch_loss"])
            norms = norms.write(step, logs["gradient_norm"])
            pairs = pairs.write(step, logs["pairs"])
        return losses.stack(), norms.stack(), pairs.stack()

    return train_steps


def one_by_one(train_steps: Callable) -> Callable:
    """Returns the same function, of which each step is a call of the graph.

    In a loop of the graph, a collective would have to carry as many numbers at each turn.
    """

    def train_steps_one_by_one(batches, number):
        done = [train_steps(batches, tf.constant(1)) for _ in range(number)]
        return [tf.concat(figures, axis=0) for figures in zip(*done)]

    return train_steps_one_by_one
