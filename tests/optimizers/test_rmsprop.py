"""Adagrad and RMSprop in one fused kernel, and RMSprop with one mean square for each row."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import DIM, RATE, ROWS, random_gradients, run, slices, table
from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.optimizers import RowRMSprop, SparseRMSprop
from tf_smoothclir.optimizers.sparse_adagrad import SparseAdagrad
from tf_smoothclir.optimizers.sparse_optimizer import gradient_policy

EPSILON = 1e-7
sparse_and_dense = pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])


def test_adagrad_by_hand():
    gradients = random_gradients(steps=2).astype("f8")
    sparse = [slices([1, 3], g[[1, 3]]) for g in gradients]
    variable, accumulator = run(SparseAdagrad(RATE, epsilon=1e-8), sparse)
    total, expected = 0.0, table()[1].astype("f8")
    for g in gradients[:, 1]:
        total = total + g**2
        expected = expected - RATE * g / (np.sqrt(total) + 1e-8)
    np.testing.assert_allclose(variable[1], expected, rtol=1e-5)
    np.testing.assert_allclose(accumulator[1], total, rtol=1e-5)
    np.testing.assert_array_equal(variable[[0, 2, 4, 5]], table()[[0, 2, 4, 5]])


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
@sparse_and_dense
def test_rmsprop_is_adam_without_momentum_whichever_rows_are_touched(rho, sparse):
    # Gradients of many magnitudes; with rho 0.5 the accumulators are scaled down seven times.
    rng = np.random.default_rng(5)
    ours = SparseRMSprop(RATE, rho=rho, epsilon=EPSILON)
    keras_adam = keras.optimizers.Adam(RATE, beta_1=0.0, beta_2=rho, epsilon=EPSILON)
    pairs = [(ours, tf.Variable(table())), (keras_adam, tf.Variable(table()))]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, DIM])])
    def step(rows, values):
        gradient = tf.IndexedSlices(values, rows, tf.constant([ROWS, DIM]))
        if not sparse:
            gradient = tf.convert_to_tensor(gradient)
        for optimizer, variable in pairs:
            optimizer.apply_gradients([(gradient, variable)])

    for optimizer, variable in pairs:
        optimizer.build([variable])
    for _ in range(300):
        rows = rng.permutation(ROWS)[: rng.integers(1, ROWS)].astype("i4")
        scale = 10.0 ** rng.integers(-9, 0)
        step(tf.constant(rows), tf.constant(rng.normal(size=(len(rows), DIM)) * scale, tf.float32))
    np.testing.assert_allclose(pairs[0][1], pairs[1][1], atol=1e-5)
    assert np.abs(pairs[0][1] - table()).max() > 0.5


@sparse_and_dense
def test_rmsprop_of_scaled_gradients_is_that_of_plain_ones(sparse):
    # With rho 0.5 the scale starts over every 40 steps.
    optimizers = [SparseRMSprop(RATE, rho=0.5, scaled_gradients=scaled) for scaled in (False, True)]
    variables, scales = [tf.Variable(table()), tf.Variable(table())], []
    for gradient in random_gradients(steps=90):
        for optimizer, variable in zip(optimizers, variables):
            scale = tf.cast(gradient_policy(optimizer).loss_scale(), tf.float32).numpy()
            given = slices([1, 4], scale * gradient[[1, 4]])
            if not sparse:
                given = tf.convert_to_tensor(given)
            optimizer.apply_gradients([(given, variable)])
        scales.append(scale)
    np.testing.assert_allclose(variables[1], variables[0], rtol=1e-5)
    assert scales[0] == scales[40] == scales[80] == pytest.approx(0.5**-0.5)
    assert max(scales) == pytest.approx(0.5**-20)


def test_rmsprop_of_a_single_number_is_adam_without_momentum():
    numbers = []
    for optimizer in (SparseRMSprop(RATE), keras.optimizers.Adam(RATE, beta_1=0.0)):
        variable = keras.Variable(0.5) if ON_KERAS_3 else tf.Variable(0.5)
        for gradient in (0.2, -0.3, 0.1):
            optimizer.apply_gradients([(tf.constant(gradient), variable)])
        numbers.append(float(variable))
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6)
    assert numbers[0] != 0.5


@pytest.mark.parametrize("rho", [0.5, 0.999])
@sparse_and_dense
def test_row_rmsprop_by_its_formulas(sparse, rho):
    gradients = random_gradients(steps=30)
    touched = [1, 4] if sparse else list(range(ROWS))
    variable = tf.Variable(table())
    optimizer = RowRMSprop(RATE, rho=rho, epsilon=EPSILON)
    optimizer.build([variable])
    step = tf.function(lambda gradient: optimizer.apply_gradients([(gradient, variable)]))
    expected, squares = table().astype("f8"), np.zeros((ROWS, 1))
    for number, gradient in enumerate(gradients, 1):
        step(slices(touched, gradient[touched]) if sparse else tf.constant(gradient))
        squares *= rho
        squares[touched] += (1 - rho) * (gradient[touched] ** 2).mean(axis=1, keepdims=True)
        pace = RATE * np.sqrt(1 - rho**number) / (np.sqrt(squares[touched]) + EPSILON)
        expected[touched] -= pace * gradient[touched]
    np.testing.assert_allclose(variable, expected, atol=1e-5)
    assert np.abs(variable - table())[touched].min() > 0.01
    assert optimizer._mean_squares[0].shape == (ROWS, 1)  # one number for a row


def test_row_rmsprop_of_rows_of_one_number_is_rmsprop():
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


@pytest.mark.parametrize("kind", [SparseRMSprop, RowRMSprop])
@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5, 1.5])
def test_a_rho_that_is_no_decay_is_refused(kind, rho):
    with pytest.raises(ValueError, match="rho must be inside"):
        kind(rho=rho)
