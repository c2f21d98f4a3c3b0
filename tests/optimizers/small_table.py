"""A small table, gradients of some of its rows, and one optimizer applied to it."""

import numpy as np
import tensorflow as tf

ROWS, DIM = 6, 3
RATE = 0.1
_SLOTS = "_momentums", "_velocities", "_accumulators", "_mean_squares"


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, DIM)).astype("f4")


def slices(rows, values):
    values = tf.constant(np.asarray(values, "f4"))
    return tf.IndexedSlices(values, tf.constant(rows, tf.int32), tf.constant([ROWS, DIM]))


def random_gradients(steps, seed=1):
    return np.random.default_rng(seed).normal(size=(steps, ROWS, DIM)).astype("f4")


def run(optimizer, gradients):
    """Applies gradients one after the other; returns the variable and its slots."""
    variable = tf.Variable(table())
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    slots = [getattr(optimizer, name)[0] for name in _SLOTS if hasattr(optimizer, name)]
    return [value.numpy() for value in (variable, *slots)]
