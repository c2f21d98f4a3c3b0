"""Clipping of dense and sparse gradients."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from tests.optimizers.small_table import slices
from tf_smoothclir.optimizers.gradients import clipped


@pytest.mark.parametrize("norm", [0.5, 4.0])
def test_clipped_scales_sparse_and_dense_gradients_only_above_the_limit(norm):
    dense, sparse = tf.constant([[3.0]]), slices([1], [[0.0, 4.0, 0.0]])
    # The norm is a parameter of its own: the caller has computed it.
    found = clipped([dense, sparse], tf.constant(norm), 2.0)
    factor = min(1.0, 2.0 / norm)
    np.testing.assert_allclose(found[0], [[3.0 * factor]])
    np.testing.assert_allclose(found[1].values, [[0.0, 4.0 * factor, 0.0]])
    np.testing.assert_array_equal(found[1].indices, [1])
