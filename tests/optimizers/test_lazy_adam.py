"""Lazy Adam: Keras's Adam where both must agree, by hand where they must not."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import DIM, RATE, random_gradients, slices, table
from tf_smoothclir.optimizers import LazyAdam

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7


def run(optimizer, gradients, initial=None):
    """Applies gradients one after the other; returns the variable and its two moments."""
    variable = tf.Variable(table() if initial is None else initial)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    moments = (optimizer._momentums[0], optimizer._velocities[0])
    return [value.numpy() for value in (variable, *moments)]


def adam_step(step, weight, moment, velocity, gradient):
    """One step of Adam on one row (Kingma and Ba 2015, section 2, second formulation)."""
    moment = BETA_1 * moment + (1 - BETA_1) * gradient
    velocity = BETA_2 * velocity + (1 - BETA_2) * gradient**2
    rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
    return weight - rate * moment / (np.sqrt(velocity) + EPSILON), moment, velocity


def test_equals_adam_bitwise_where_every_row_is_touched():
    gradients = random_gradients(steps=7)
    order = [3, 0, 5, 1, 4, 2]
    lazy = run(LazyAdam(RATE), [slices(order, g[order]) for g in gradients])
    adam = run(keras.optimizers.Adam(RATE), [tf.constant(g) for g in gradients])
    for found, expected in zip(lazy, adam):
        np.testing.assert_array_equal(found, expected)


def test_dense_gradients_are_adam():
    gradients = [tf.constant(g) for g in random_gradients(steps=3)]
    for found, expected in zip(
        run(LazyAdam(RATE), gradients), run(keras.optimizers.Adam(RATE), gradients)
    ):
        np.testing.assert_array_equal(found, expected)


def test_amsgrad_falls_back_to_adam():
    gradients = [slices([1, 4], g[[1, 4]]) for g in random_gradients(steps=3)]
    for found, expected in zip(
        run(LazyAdam(RATE, amsgrad=True), gradients),
        run(keras.optimizers.Adam(RATE, amsgrad=True), gradients),
    ):
        np.testing.assert_array_equal(found, expected)


def test_untouched_rows_and_their_moments_do_not_move():
    first, second = random_gradients(steps=2)
    before = run(LazyAdam(RATE), [tf.constant(first)])
    after = run(LazyAdam(RATE), [tf.constant(first), slices([2, 5], second[[2, 5]])])
    for old, new in zip(before, after):
        np.testing.assert_array_equal(new[[0, 1, 3, 4]], old[[0, 1, 3, 4]])
        assert (new[[2, 5]] != old[[2, 5]]).all()


def test_adam_itself_would_move_untouched_rows():
    first, second = random_gradients(steps=2)
    before = run(keras.optimizers.Adam(RATE), [tf.constant(first)])
    after = run(keras.optimizers.Adam(RATE), [tf.constant(first), slices([2], second[[2]])])
    assert (after[0][0] != before[0][0]).all()


def test_row_touched_after_a_pause_by_hand():
    # Touched in steps 1 and 4: its moments decay twice, the bias correction has counted four.
    gradients = random_gradients(steps=4).astype("f8")
    rows = [[1, 2], [2], [2, 3], [1]]
    found = run(LazyAdam(RATE), [slices(r, g[r]) for r, g in zip(rows, gradients)])
    state = (table()[1].astype("f8"), 0.0, 0.0)
    for step in (1, 4):
        state = adam_step(step, *state, gradients[step - 1][1])
    for value, expected in zip(found, state):
        np.testing.assert_allclose(value[1], expected, rtol=1e-4)


def test_duplicate_rows_count_once_with_their_sum():
    twice = slices([2, 4, 2], [[1, 2, 3], [5, 5, 5], [10, 20, 30]])
    once = slices([2, 4], [[11, 22, 33], [5, 5, 5]])
    for found, expected in zip(run(LazyAdam(RATE), [twice]), run(LazyAdam(RATE), [once])):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_no_row_at_all_changes_nothing_but_the_count_of_steps():
    optimizer = LazyAdam(RATE)
    variable, moment, velocity = run(optimizer, [slices([], np.zeros([0, DIM]))])
    np.testing.assert_array_equal(variable, table())
    assert not moment.any()
    assert not velocity.any()
    assert optimizer.iterations == 1


@pytest.mark.parametrize("limit", [0.5, 3.0, 1e6])
def test_global_clipnorm_with_sparse_gradients_by_hand(limit):
    values = {"a": table(3)[:2], "b": table(4)[:3]}
    norm = np.sqrt(sum((v.astype("f8") ** 2).sum() for v in values.values()))
    scale = min(1.0, limit / norm)
    variables = {name: tf.Variable(table()) for name in values}
    optimizer = LazyAdam(RATE, global_clipnorm=limit)
    optimizer.build(list(variables.values()))
    gradients = {"a": slices([0, 3], values["a"]), "b": slices([5, 1, 2], values["b"])}
    optimizer.apply_gradients([(gradients[name], variables[name]) for name in values])
    moments = [m.numpy() for m in optimizer._momentums]
    np.testing.assert_allclose(moments[0][[0, 3]], 0.1 * scale * values["a"], rtol=1e-5)
    np.testing.assert_allclose(moments[1][[5, 1, 2]], 0.1 * scale * values["b"], rtol=1e-5)


def test_learning_rate_schedule_is_followed():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.1, 0.0])
    first, second = random_gradients(steps=2)
    once = run(LazyAdam(schedule), [slices([1], first[[1]])])
    twice = run(LazyAdam(schedule), [slices([1], g[[1]]) for g in (first, second)])
    assert (once[0][1] != table()[1]).all()
    np.testing.assert_array_equal(twice[0], once[0])  # from step 1 on the rate is 0
    assert (twice[1][1] != once[1][1]).all()


def test_config_round_trip_continues_as_the_original():
    optimizer = LazyAdam(0.03, beta_1=0.8, beta_2=0.99, epsilon=1e-4, global_clipnorm=2.0)
    restored = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(restored) is LazyAdam
    assert restored.get_config() == optimizer.get_config()
    gradients = [slices([1, 4], g[[1, 4]]) for g in random_gradients(steps=2)]
    for found, expected in zip(run(restored, gradients), run(optimizer, gradients)):
        np.testing.assert_array_equal(found, expected)
