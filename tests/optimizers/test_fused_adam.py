"""Adam in the fused kernel against Keras's."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import RATE, random_gradients, slices, table
from tf_smoothclir.optimizers import FusedAdam


def run(optimizer, gradients):
    """Applies gradients one after the other; returns the variable and its two moments."""
    variable = tf.Variable(table())
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    moments = (optimizer._momentums[0], optimizer._velocities[0])
    return [value.numpy() for value in (variable, *moments)]


def dense():
    return [tf.constant(gradient) for gradient in random_gradients(steps=7)]


def some_rows():
    rows = [[1, 4], [2], [5, 0], [1], [3], [4, 2], [0]]
    return [slices(r, g[r]) for r, g in zip(rows, random_gradients(steps=7))]


@pytest.mark.parametrize("gradients", [dense, some_rows])
@pytest.mark.parametrize(
    "options",
    [{}, {"beta_1": 0.5, "beta_2": 0.9, "epsilon": 0.01}, {"amsgrad": True}],
    ids=str,
)
def test_equals_the_adam_of_keras(gradients, options):
    found = run(FusedAdam(RATE, **options), gradients())
    expected = run(keras.optimizers.Adam(RATE, **options), gradients())
    for ours, theirs in zip(found, expected, strict=True):  # the kernel has 1 - beta_2 in float32
        np.testing.assert_allclose(ours, theirs, rtol=5e-5, atol=5e-6)


def test_rows_without_a_gradient_move_while_their_moment_lasts():
    first, second = random_gradients(steps=2)
    before, *_ = run(FusedAdam(RATE), [tf.constant(first)])
    after, *_ = run(FusedAdam(RATE), [tf.constant(first), slices([2], second[[2]])])
    assert (after != before).all()


def test_values_of_a_row_that_is_named_twice_add_up():
    values = random_gradients(steps=1)[0]
    twice = run(FusedAdam(RATE), [slices([2, 2], values[:2])])
    once = run(FusedAdam(RATE), [slices([2], values[:2].sum(axis=0, keepdims=True))])
    for found, expected in zip(twice, once, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_rate_that_changes_between_steps_counts():
    optimizer = FusedAdam(RATE)
    variable = tf.Variable(table())
    optimizer.build([variable])
    gradients = dense()
    optimizer.apply_gradients([(gradients[0], variable)])
    before = variable.numpy()
    optimizer.learning_rate = 0.0
    optimizer.apply_gradients([(gradients[1], variable)])
    np.testing.assert_array_equal(variable.numpy(), before)
