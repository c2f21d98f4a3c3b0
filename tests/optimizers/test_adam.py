"""Lazy and fused Adam: Keras's Adam where they must agree, by hand where they must not."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import DIM, RATE, random_gradients, run, slices, table
from tf_smoothclir.optimizers import FusedAdam, LazyAdam

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7


def adam_step(step, weight, moment, velocity, gradient):
    """One step of Adam on one row (Kingma and Ba 2015, section 2, second formulation)."""
    moment = BETA_1 * moment + (1 - BETA_1) * gradient
    velocity = BETA_2 * velocity + (1 - BETA_2) * gradient**2
    rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
    return weight - rate * moment / (np.sqrt(velocity) + EPSILON), moment, velocity


def dense():
    return [tf.constant(gradient) for gradient in random_gradients(steps=7)]


def all_rows():
    order = [3, 0, 5, 1, 4, 2]
    return [slices(order, gradient[order]) for gradient in random_gradients(steps=7)]


def some_rows():
    rows = [[1, 4], [2], [5, 0], [1], [3], [4, 2], [0]]
    return [slices(r, g[r]) for r, g in zip(rows, random_gradients(steps=7))]


@pytest.mark.parametrize(
    ("gradients", "options"), [(dense, {}), (all_rows, {}), (some_rows, {"amsgrad": True})]
)
def test_lazy_adam_is_adam_bitwise_where_every_row_is_touched_and_with_amsgrad(gradients, options):
    lazy = run(LazyAdam(RATE, **options), gradients())
    adam = run(keras.optimizers.Adam(RATE, **options), dense() if not options else gradients())
    for found, expected in zip(lazy, adam, strict=True):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("gradients", [dense, some_rows])
@pytest.mark.parametrize(
    "options", [{}, {"beta_1": 0.5, "beta_2": 0.9, "epsilon": 0.01}, {"amsgrad": True}], ids=str
)
def test_fused_adam_is_adam(gradients, options):
    found = run(FusedAdam(RATE, **options), gradients())
    expected = run(keras.optimizers.Adam(RATE, **options), gradients())
    for ours, theirs in zip(found, expected, strict=True):  # the kernel has 1 - beta_2 in float32
        np.testing.assert_allclose(ours, theirs, rtol=5e-5, atol=5e-6)


def test_untouched_rows_and_their_moments_do_not_move_by_lazy_adam():
    first, second = random_gradients(steps=2)
    gradients = [tf.constant(first), slices([2, 5], second[[2, 5]])]
    for old, new in zip(run(LazyAdam(RATE), gradients[:1]), run(LazyAdam(RATE), gradients)):
        np.testing.assert_array_equal(new[[0, 1, 3, 4]], old[[0, 1, 3, 4]])
        assert (new[[2, 5]] != old[[2, 5]]).all()


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


def test_no_row_at_all_changes_nothing_but_the_count_of_steps():
    optimizer = LazyAdam(RATE)
    variable, *moments = run(optimizer, [slices([], np.zeros([0, DIM]))])
    np.testing.assert_array_equal(variable, table())
    assert not np.any(moments)
    assert optimizer.iterations == 1


@pytest.mark.parametrize("limit", [0.5, 3.0, 1e6])
def test_global_clipnorm_with_sparse_gradients_by_hand(limit):
    rows, values = [[0, 3], [5, 1, 2]], [table(3)[:2], table(4)[:3]]
    scale = min(1.0, limit / np.sqrt(sum((v.astype("f8") ** 2).sum() for v in values)))
    variables = [tf.Variable(table()) for _ in values]
    optimizer = LazyAdam(RATE, global_clipnorm=limit)
    optimizer.build(variables)
    optimizer.apply_gradients(zip(map(slices, rows, values), variables))
    for moment, named, value in zip(optimizer._momentums, rows, values):
        np.testing.assert_allclose(moment.numpy()[named], 0.1 * scale * value, rtol=1e-5)
