"""RMSprop with one mean square for each row."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers.small_table import DIM, RATE, ROWS, random_gradients, slices, table
from tf_smoothclir.optimizers import RowRMSprop, SparseRMSprop

EPSILON = 1e-7


def by_hand(start, gradients, touched, rho):
    """The formulas of the class, in float64."""
    weights, squares = start.astype(np.float64), np.zeros((len(start), 1))
    for step, gradient in enumerate(gradients, 1):
        squares *= rho
        squares[touched] += (1 - rho) * (gradient[touched] ** 2).mean(axis=1, keepdims=True)
        rate = RATE * np.sqrt(1 - rho**step)
        pace = rate / (np.sqrt(squares[touched]) + EPSILON)
        weights[touched] -= pace * gradient[touched]
    return weights


@pytest.mark.parametrize("rho", [0.5, 0.999])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_updates_are_those_of_the_formulas(sparse, rho):
    gradients = random_gradients(steps=30)
    touched = [1, 4] if sparse else list(range(ROWS))
    variable = tf.Variable(table())
    optimizer = RowRMSprop(RATE, rho=rho, epsilon=EPSILON)
    optimizer.build([variable])
    step = tf.function(lambda gradient: optimizer.apply_gradients([(gradient, variable)]))
    for gradient in gradients:
        step(slices(touched, gradient[touched]) if sparse else tf.constant(gradient))
    expected = by_hand(table(), gradients, touched, rho)
    np.testing.assert_allclose(variable, expected, atol=1e-5)
    assert np.abs(variable - table())[touched].min() > 0.01


def test_rows_of_one_number_are_updated_as_by_rmsprop():
    # Mean squares over one number are its square: weights of tokens, positions, thresholds.
    for start in (np.ones([5], "f4"), np.ones([5, 1], "f4"), np.float32(1.0)):
        variables = [tf.Variable(start), tf.Variable(start)]
        for kind, variable in zip((RowRMSprop, SparseRMSprop), variables):
            optimizer = kind(RATE, rho=0.9)
            optimizer.build([variable])
            for seed in range(20):
                gradient = np.random.default_rng(seed).normal(size=start.shape).astype("f4")
                optimizer.apply_gradients([(tf.constant(gradient), variable)])
        np.testing.assert_allclose(*variables, rtol=1e-4)
        assert np.abs(variables[0] - start).min() > 0


def test_the_state_of_a_table_is_one_number_for_a_row():
    optimizer = RowRMSprop()
    optimizer.build([tf.Variable(table()), tf.Variable(tf.zeros([3]))])
    assert [tuple(slot.shape) for slot in optimizer._mean_squares] == [(ROWS, 1), (3,)]


def test_a_gradient_of_zero_moves_nothing():
    variable = tf.Variable(table())
    optimizer = RowRMSprop(RATE)
    optimizer.build([variable])
    optimizer.apply_gradients([(slices([0, 2], np.zeros((2, DIM))), variable)])
    np.testing.assert_array_equal(variable, table())


@pytest.mark.parametrize("rho", [0.0, 1.0, -1.0])
def test_a_rho_that_is_no_decay_is_refused(rho):
    with pytest.raises(ValueError, match="rho must be inside"):
        RowRMSprop(rho=rho)
