"""Adagrad and RMSprop in the fused kernel of Adagrad."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import DIM, RATE, random_gradients, run_rows, slices, table
from tf_smoothclir.optimizers import SparseRMSprop
from tf_smoothclir.optimizers.sparse_adagrad import SparseAdagrad

FUSED = (SparseAdagrad, SparseRMSprop)


def test_adagrad_by_hand():
    gradients = random_gradients(steps=2).astype("f8")
    sparse = [slices([1, 3], g[[1, 3]]) for g in gradients]
    variable, accumulator = run_rows(SparseAdagrad(RATE, epsilon=1e-8), sparse)
    total, expected = 0.0, table()[1].astype("f8")
    for g in gradients[:, 1]:
        total = total + g**2
        expected = expected - RATE * g / (np.sqrt(total) + 1e-8)
    np.testing.assert_allclose(variable[1], expected, rtol=1e-5)
    np.testing.assert_allclose(accumulator[1], total, rtol=1e-5)
    np.testing.assert_array_equal(variable[[0, 2, 4, 5]], table()[[0, 2, 4, 5]])


@pytest.mark.parametrize("kind", FUSED)
def test_gradients_of_zero_move_nothing_and_stay_finite(kind):
    # A score inside the segment of its grade has gradient 0, also in a row that is new.
    variable, accumulator = run_rows(kind(RATE), [slices([2, 3], np.zeros([2, DIM]))] * 3)
    np.testing.assert_array_equal(variable, table())
    assert not accumulator.any()


@pytest.mark.parametrize("kind", FUSED)
def test_fused_kernels_count_rows_named_twice_with_their_sum(kind):
    twice = slices([2, 4, 2], [[1, 2, 3], [5, 5, 5], [10, 20, 30]])
    once = slices([2, 4], [[11, 22, 33], [5, 5, 5]])
    found, expected = run_rows(kind(RATE), [twice]), run_rows(kind(RATE), [once])
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-6)


@pytest.mark.parametrize("kind", FUSED)
@pytest.mark.parametrize("scale", [1e-14, 1e10])
def test_the_scale_of_the_gradients_does_not_matter(kind, scale):
    gradients = random_gradients(steps=4)
    found, expected = (
        run_rows(kind(RATE, epsilon=0.0), [tf.constant(g * s) for g in gradients])
        for s in (scale, 1.0)
    )
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-4)


@pytest.mark.parametrize("kind", FUSED)
def test_fused_config_round_trip(kind):
    optimizer = kind(0.03, epsilon=1e-4, unique_rows=True)
    restored = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(restored) is kind
    assert restored.get_config() == optimizer.get_config()
