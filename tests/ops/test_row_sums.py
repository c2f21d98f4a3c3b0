"""Sums of rows: the kernels of both stacks do the same, on either stack."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests.graphs import nodes_of_functions, operations_in
from tf_smoothclir.ops import row_sums
from tf_smoothclir.ops.row_sums import (
    segment_sum,
    segment_sum_by_matrix,
    segment_sum_by_segments,
    sums_at_by_matrix,
    sums_at_by_segments,
    take,
)
from tf_smoothclir.utils import devices

BOTH = [sums_at_by_segments, sums_at_by_matrix]
# Positions and ascending rows of pairs, number of rows, size of the result.
PAIRS = {
    "rows are skipped, positions come twice, one pair comes twice": (
        [3, 0, 3, 1, 1, 1],
        [0, 0, 2, 2, 4, 4],
        5,
        6,
    ),
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
    compiled = tf.function(kernel)
    found = compiled(
        tf.constant(positions, index_type),
        tf.constant(values),
        tf.constant(rows, tf.int32),
        tf.constant(size),
    )
    assert found.shape == (size, dim)
    np.testing.assert_allclose(found, expected_sums(positions, values, rows, size), rtol=1e-6)


@pytest.mark.parametrize("kernel", BOTH)
def test_sums_at_of_many_pairs_are_reproducible(kernel):
    if kernel is sums_at_by_matrix and devices.has_gpu():
        pytest.skip("its products add in no fixed order on a GPU, where training does not use it")
    rng = np.random.default_rng(4)
    positions, rows = rng.integers(0, 500, 20_000), np.sort(rng.integers(0, 128, 20_000))
    values = rng.normal(size=(128, 64)).astype("f4")
    arguments = [tf.constant(a) for a in (positions.astype("i4"), values, rows.astype("i4"), 500)]
    first, second = (kernel(*arguments).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    expected = np.zeros((500, 64))
    np.add.at(expected, positions, values[rows])
    np.testing.assert_allclose(first, expected, atol=1e-4)


@pytest.mark.parametrize("kernel", [segment_sum_by_segments, segment_sum_by_matrix, None])
@pytest.mark.parametrize("case", [name for name in PAIRS if name != "no pair"])
def test_segment_sum_and_its_gradient(case, kernel, monkeypatch):
    monkeypatch.setattr(row_sums, "segment_sum_kernel", lambda: kernel)
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


def test_the_gradient_of_a_segment_sum_without_pairs_is_zero():
    rows, none = tf.ones([4, 3]), tf.zeros([0], tf.int32)
    with tf.GradientTape() as tape:
        tape.watch(rows)
        sums = segment_sum(rows, none, none, 3, training=True)
    np.testing.assert_array_equal(sums, np.zeros([3, 3]))
    np.testing.assert_array_equal(tape.gradient(sums, rows), np.zeros([4, 3]))


@pytest.mark.parametrize("training", [True, False])
def test_take_and_its_gradient(training):
    rows = np.random.default_rng(7).normal(size=(4, 3)).astype("f4")
    positions = np.array([2, 0, 2, 2], "i4")
    weights = np.arange(12, dtype="f4").reshape(4, 3)
    with tf.GradientTape() as tape:
        watched = tf.constant(rows)
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
    if not row_sums.uses_products():
        expected = {"SparseSegmentSumGrad": 2}
    assert {kernel: nodes.count(kernel) for kernel in expected} == expected
    assert "UnsortedSegmentSum" not in nodes


def test_on_a_gpu_no_product_with_a_sparse_matrix_adds_up_rows(monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: True)

    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32)])
    def sums(rows, positions):
        summed = row_sums.segment_sum_kernel()(rows, positions, positions, 5)
        return summed, row_sums.sums_at(positions, rows, positions, 5)

    found = operations_in(sums.get_concrete_function().graph)
    assert {"SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad"} <= found
    assert "SparseMatrixMatMul" not in found


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
