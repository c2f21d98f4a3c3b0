"""The step loop: many training steps in one call of the graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import tensorflow as tf

from tf_smoothclir.ops.huge_pages import use_huge_pages
from tf_smoothclir.protocols.task import PAIRS, TERMS, Exchange, Task


class StepLoop:
    """Trains a task, many steps at a time."""

    def __init__(self, task: Task, exchange: Exchange | None = None):
        use_huge_pages([*task.variables.trained, *task.variables.optimizer])
        self._names = (*task.losses, *task.checked, PAIRS, TERMS)
        self._train_steps = compile_steps(task, exchange)
        if exchange:
            self._train_steps = one_by_one(self._train_steps)

    def __call__(self, batches, number: int) -> dict[str, np.ndarray]:
        """Trains on the next `number` batches; name -> `[number]` of what `train_step` returns."""
        results = self._train_steps(batches, tf.constant(number))
        return {name: values.numpy() for name, values in zip(self._names, results)}


def compile_steps(task: Task, exchange: Exchange | None = None) -> Callable:
    """A graph function that runs many training steps.

    It takes an iterator of batches and how many to train on, and returns `[steps]` values of each
    of the task's losses, then of each checked number, then the numbers of pairs and terms.
    """
    # It would make steps in a loop of the graph three times as slow on CPUs (TensorFlow 2.15).
    tf.config.optimizer.set_experimental_options({"arithmetic_optimization": False})
    # Steps do not need AutoGraph, which would take five times as long as all other tracing.
    train_step = tf.autograph.experimental.do_not_convert(task.train_step)
    names = (*task.losses, *task.checked)

    @tf.function
    def train_steps(batches, number):
        results = [tf.TensorArray(tf.float32, number) for _ in names]
        results += [tf.TensorArray(tf.int32, number) for _ in (PAIRS, TERMS)]
        for step in tf.range(number):
            of_step = train_step(next(batches), exchange)
            values = [of_step[name] for name in (*names, PAIRS)]
            values.append(of_step.get(TERMS, of_step[PAIRS]))
            results = [result.write(step, value) for result, value in zip(results, values)]
        return [result.stack() for result in results]

    return train_steps


def one_by_one(train_steps: Callable) -> Callable:
    """Function with one call of the graph for each step."""
    # In a loop of the graph, a collective would need messages of the same length at each
    # turn.

    def train_steps_one_by_one(batches, number):
        done = [train_steps(batches, tf.constant(1)) for _ in range(number)]
        return [tf.concat(values, axis=0) for values in zip(*done)]

    return train_steps_one_by_one


def are_finite(variables: Iterable[tf.Variable]) -> bool:
    """Whether all values of all floating variables are finite."""
    sums = []
    for variable in variables:
        if variable.dtype.is_floating:
            tf.raw_ops.DisableCopyOnRead(resource=variable.handle)  # or it would copy a table
            sums.append(tf.reduce_sum(variable))
    return all(map(np.isfinite, sums))
