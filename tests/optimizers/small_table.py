"""A small table, gradients of some of its rows, and one optimizer applied to it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

ROWS, DIM = 6, 3
RATE = 0.1


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, DIM)).astype("f4")


def slices(rows, values, variable_rows=ROWS):
    values = np.asarray(values, "f4")
    return tf.IndexedSlices(
        tf.constant(values), tf.constant(rows, tf.int32), tf.constant([variable_rows, DIM])
    )


def random_gradients(steps, seed=1):
    return np.random.default_rng(seed).normal(size=(steps, ROWS, DIM)).astype("f4")


def run_rows(optimizer, gradients):
    """Applies gradients one after the other; returns the variable and its accumulator."""
    variable = tf.Variable(table())
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    return variable.numpy(), optimizer._accumulators[0].numpy()
