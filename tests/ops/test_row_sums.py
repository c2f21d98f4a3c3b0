"""Sums of rows: the kernels of both stacks do the same, on either stack."""

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests.graphs import nodes_of_functions
from tf_smoothclir.ops import row_sums
from tf_smoothclir.ops.row_sums import (
    segment_sum,
    segment_sum_by_matrix,
    segment_sum_by_segments,
    sums_at,
    sums_at_by_matrix,
    sums_at_by_segments,
    take,
)

BOTH = [sums_at_by_segments, sums_at_by_matrix]
# Positions and ascending rows of pairs, number of rows, size of the result.
PAIRS = {
    "rows are skipped, others come twice": ([3, 0, 3, 1, 1, 1], [0, 0, 2, 2, 4, 4], 5, 6),
    "one pair": ([0], [0], 1, 1),
    "no pair": ([], [], 3, 4),
    "nothing at all": ([], [], 0, 0),
}


def expected_sums(positions, values, rows, size):
    result = np.zeros([size, values.shape[1]])
    for position, row in zip(positions, rows):
        result[position] += values[row]
    return result


@pytest.mark.parametrize("kernel", BOTH)
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("index_type", [tf.int32, tf.int64], ids=["int32", "int64"])
def test_sums_at(kernel, case, dim, index_type):
    positions, rows, number, size = PAIRS[case]
    values = np.random.default_rng(3).normal(size=(number, dim)).astype("f4")
    pairs = tf.constant(positions, index_type), tf.constant(values), tf.constant(rows, tf.int32)
    found = tf.function(kernel)(*pairs, tf.constant(size))
    assert found.shape == (size, dim)
    np.testing.assert_allclose(found, expected_sums(positions, values, rows, size), rtol=1e-6)


@pytest.mark.parametrize("kernel", [segment_sum_by_segments, segment_sum_by_matrix, None])
@pytest.mark.parametrize("case", PAIRS)
def test_segment_sum_and_its_gradient(case, kernel, monkeypatch):
    monkeypatch.setattr(row_sums, "trained_segment_sum", kernel)
    training = kernel is not None
    positions, segments, number, size = PAIRS[case]
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(size, 3)).astype("f4")
    weights = rng.normal(size=(number, 3)).astype("f4")

    @tf.function
    def value_and_gradient(rows):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            pairs = [tf.constant(numbers, tf.int32) for numbers in (positions, segments)]
            sums = segment_sum(rows, *pairs, number, training=training)
            total = tf.reduce_sum(weights * sums)
        return sums, tape.gradient(total, rows)

    sums, gradient = value_and_gradient(tf.constant(rows))
    np.testing.assert_allclose(sums, expected_sums(segments, rows, positions, number), rtol=1e-6)
    expected = expected_sums(positions, weights, segments, size)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_take_and_its_gradient(training):
    rows = np.random.default_rng(7).normal(size=(4, 3)).astype("f4")
    positions = np.array([2, 0, 2, 2], "i4")
    weights, watched = np.arange(12, dtype="f4").reshape(4, 3), tf.constant(rows)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        taken = take(watched, tf.constant(positions), training=training)
        total = tf.reduce_sum(weights * taken)
    np.testing.assert_array_equal(taken, rows[positions])
    expected = expected_sums(positions, weights, range(4), 4)
    np.testing.assert_allclose(tf.convert_to_tensor(tape.gradient(total, watched)), expected)


def test_gradients_are_made_by_the_kernel_of_the_stack():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32)])
    def gradients(rows, positions):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(rows)
            sums = segment_sum(rows, positions, positions, 5, training=True)
            taken = take(rows, positions, training=True)
        return tape.gradient(sums, rows), tape.gradient(taken, rows)

    graph = gradients.get_concrete_function().graph
    nodes = [node.op for node in nodes_of_functions(graph)]
    # Of a sum forward and back, and of what was taken.
    expected = {"SparseMatrixMatMul": 3, "SparseTensorToCSRSparseMatrix": 2}
    if sums_at is sums_at_by_segments:
        expected = {"SparseSegmentSumGrad": 2}
    assert {kernel: nodes.count(kernel) for kernel in expected} == expected
    assert "UnsortedSegmentSum" not in nodes


def test_gradients_do_not_keep_their_table_alive():
    # tf.custom_gradient keeps it all until the process ends.
    def trace():
        table = tf.Variable(tf.ones([5, 3]))

        @tf.function
        def step(positions):
            with tf.GradientTape() as tape:
                rows = tf.gather(table, positions)
                total = segment_sum(rows, positions, positions, 5, training=True)
                total += take(rows, positions, training=True)
            return tape.gradient(total, table).values

        step(tf.constant([0, 1, 2, 3, 4]))
        return weakref.ref(table)

    table = trace()
    gc.collect()
    assert table() is None
