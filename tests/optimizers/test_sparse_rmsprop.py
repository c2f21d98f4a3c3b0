"""RMSprop: Keras's Adam without momentum, whatever rows are touched."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import DIM, RATE, ROWS, random_gradients, run_rows, slices, table
from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.optimizers import SparseRMSprop
from tf_smoothclir.optimizers.sparse_optimizer import gradient_policy

EPSILON = 1e-7


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_rmsprop_is_adam_without_momentum_whichever_rows_are_touched(rho, sparse):
    # Gradients of many magnitudes; with rho 0.5 the accumulators are scaled down seven times.
    rng = np.random.default_rng(5)
    ours = SparseRMSprop(RATE, rho=rho, epsilon=EPSILON)
    keras_adam = keras.optimizers.Adam(RATE, beta_1=0.0, beta_2=rho, epsilon=EPSILON)
    variables = [tf.Variable(table()), tf.Variable(table())]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, DIM])])
    def step(rows, values):
        gradient = tf.IndexedSlices(values, rows, tf.constant([ROWS, DIM]))
        if not sparse:
            gradient = tf.convert_to_tensor(gradient)
        for optimizer, variable in zip((ours, keras_adam), variables):
            optimizer.apply_gradients([(gradient, variable)])

    for optimizer, variable in zip((ours, keras_adam), variables):
        optimizer.build([variable])
    for _ in range(300):
        rows = rng.permutation(ROWS)[: rng.integers(1, ROWS)].astype("i4")
        scale = 10.0 ** rng.integers(-9, 0)
        step(tf.constant(rows), tf.constant(rng.normal(size=(len(rows), DIM)) * scale, tf.float32))
    np.testing.assert_allclose(variables[0], variables[1], atol=1e-5)
    assert np.abs(variables[0] - table()).max() > 0.5


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_rmsprop_of_scaled_gradients_is_that_of_plain_ones(sparse):
    # With rho 0.5 the scale starts over every 40 steps.
    steps = random_gradients(steps=90)
    plain, scaled = (
        SparseRMSprop(RATE, rho=0.5),
        SparseRMSprop(RATE, rho=0.5, scaled_gradients=True),
    )
    variables = [tf.Variable(table()), tf.Variable(table())]
    scales = []
    for gradient in steps:
        for optimizer, variable in zip((plain, scaled), variables):
            scale = tf.cast(gradient_policy(optimizer).loss_scale(), tf.float32).numpy()
            given = slices([1, 4], scale * gradient[[1, 4]])
            if not sparse:
                given = tf.convert_to_tensor(given)
            optimizer.apply_gradients([(given, variable)])
        scales.append(scale)
    np.testing.assert_allclose(variables[1], variables[0], rtol=1e-5)
    assert scales[0] == scales[40] == scales[80] == pytest.approx(0.5**-0.5)
    assert max(scales) == pytest.approx(0.5**-20)


def test_rmsprop_by_hand():
    # Row 1 in steps 1 and 3: v = 0.01 g1² decays twice before g3² comes in.
    first, _, third = random_gradients(steps=3).astype("f8")
    gradients = [slices([1], first[[1]]), slices([2], first[[2]]), slices([1, 4], third[[1, 4]])]
    variable, accumulator = run_rows(SparseRMSprop(RATE, rho=0.99, epsilon=1e-8), gradients)
    g1, g3 = first[1], third[1]
    expected = table()[1].astype("f8")
    v = 0.01 * g1**2
    expected -= RATE * np.sqrt(1 - 0.99**1) * g1 / (np.sqrt(v) + 1e-8)
    v = 0.99 * (0.99 * v) + 0.01 * g3**2
    expected -= RATE * np.sqrt(1 - 0.99**3) * g3 / (np.sqrt(v) + 1e-8)
    np.testing.assert_allclose(variable[1], expected, rtol=1e-5)
    np.testing.assert_allclose(accumulator[1] * 0.01 * 0.99**3, v, rtol=1e-5)


def test_rmsprop_of_a_single_number_is_adam_without_momentum():
    numbers = []
    for optimizer in (SparseRMSprop(RATE), keras.optimizers.Adam(RATE, beta_1=0.0)):
        variable = keras.Variable(0.5) if ON_KERAS_3 else tf.Variable(0.5)
        for gradient in (0.2, -0.3, 0.1):
            optimizer.apply_gradients([(tf.constant(gradient), variable)])
        numbers.append(float(variable))
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6)
    assert numbers[0] != 0.5


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5, 1.5])
def test_rho_outside_its_range_is_an_error(rho):
    with pytest.raises(ValueError, match="inside"):
        SparseRMSprop(rho=rho)
