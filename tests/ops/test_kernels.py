"""The kernels of both stacks do the same, on either stack."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests.graphs import nodes_of_functions
from tf_smoothclir.ops import kernels
from tf_smoothclir.ops.kernels import (
    RowAdagradInPlace,
    RowAdagradOfCopies,
    segment_sum,
    segment_sum_by_matrix,
    segment_sum_by_segments,
    sums_at,
    sums_at_by_matrix,
    sums_at_by_segments,
    take,
    take_off_rows_in_place,
    take_off_rows_of_copies,
)

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


@pytest.mark.parametrize("way", BOTH)
@pytest.mark.parametrize("case", PAIRS)
@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("index_type", [tf.int32, tf.int64], ids=["int32", "int64"])
def test_sums_at(way, case, dim, index_type):
    positions, rows, number, size = PAIRS[case]
    values = np.random.default_rng(3).normal(size=(number, dim)).astype("f4")
    compiled = tf.function(way)
    found = compiled(
        tf.constant(positions, index_type),
        tf.constant(values),
        tf.constant(rows, tf.int32),
        tf.constant(size),
    )
    assert found.shape == (size, dim)
    np.testing.assert_allclose(found, expected_sums(positions, values, rows, size), rtol=1e-6)


@pytest.mark.parametrize("way", BOTH)
def test_sums_at_of_many_pairs_are_the_same_twice(way):
    rng = np.random.default_rng(4)
    positions, rows = rng.integers(0, 500, 20_000), np.sort(rng.integers(0, 128, 20_000))
    values = rng.normal(size=(128, 64)).astype("f4")
    arguments = [tf.constant(a) for a in (positions.astype("i4"), values, rows.astype("i4"), 500)]
    first, second = (way(*arguments).numpy() for _ in range(2))
    np.testing.assert_array_equal(first, second)
    expected = np.zeros((500, 64))
    np.add.at(expected, positions, values[rows])
    np.testing.assert_allclose(first, expected, atol=1e-4)


@pytest.mark.parametrize("way", [segment_sum_by_segments, segment_sum_by_matrix, None])
@pytest.mark.parametrize("case", [name for name in PAIRS if name != "no pair"])
def test_segment_sum_and_its_gradient(case, way, monkeypatch):
    monkeypatch.setattr(kernels, "trained_segment_sum", way)
    training = way is not None
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


def test_the_gradient_of_a_segment_sum_of_nothing_is_zero():
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
    if sums_at is sums_at_by_segments:
        expected = {"SparseSegmentSumGrad": 2}
    assert {kernel: nodes.count(kernel) for kernel in expected} == expected
    assert "UnsortedSegmentSum" not in nodes


def test_nothing_that_the_gradients_refer_to_is_kept():
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


@pytest.mark.parametrize("kind", [RowAdagradInPlace, RowAdagradOfCopies])
def test_row_adagrad_by_hand_and_other_rows_stay(kind):
    rng = np.random.default_rng(6)
    before, squares = rng.normal(size=(5, 3)).astype("f4"), rng.random((5, 3)).astype("f4")
    table, sums = tf.Variable(before), tf.Variable(squares)
    update = tf.function(kind(table, sums))
    expected, expected_sums_of_squares = before.copy(), squares.copy()
    for rows in ([3, 1], [], [1]):
        gradient = rng.normal(size=(len(rows), 3)).astype("f4")
        slices = tf.IndexedSlices(
            tf.constant(gradient), tf.constant(rows, tf.int32), tf.constant([5, 3])
        )
        update(slices, tf.constant(0.1), tf.constant(1e-3))
        expected_sums_of_squares[rows] += gradient**2
        root = np.sqrt(expected_sums_of_squares[rows])
        expected[rows] -= np.float32(0.1) * gradient / (root + np.float32(1e-3))
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    np.testing.assert_allclose(sums, expected_sums_of_squares, rtol=1e-6)
    np.testing.assert_array_equal(table.numpy()[[0, 2, 4]], before[[0, 2, 4]])


@pytest.mark.parametrize("take_off", [take_off_rows_in_place, take_off_rows_of_copies])
@pytest.mark.parametrize("rows", [[3, 1], []], ids=["two rows", "none"])
def test_rows_are_subtracted_from_and_others_stay(take_off, rows):
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    expected = table.numpy()
    change = np.full([len(rows), 2], 0.25, np.float32)
    tf.function(take_off)(table, tf.constant(rows, tf.int32), tf.constant(change))
    expected[rows] -= 0.25
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("ids", [[2, 0], [[2], [0]]], ids=["flat", "in two dimensions"])
@pytest.mark.parametrize("traced", [True, False], ids=["of the graph", "constant"])
def test_rows_are_read_again_or_not_whatever_names_them(ids, traced):
    table, ids = tf.Variable([[1.0], [2.0], [3.0]]), tf.constant(ids)

    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids))
        gradient = tape.gradient(loss, table)
        take_off_rows_of_copies(table, gradient.indices, gradient.values)

    tf.function(step)(ids) if traced else tf.function(lambda: step(ids))()
    step(ids)  # outside of a graph
    np.testing.assert_array_equal(table[:, 0], [1 - 2, 2, 3 - 2])


def test_rows_that_the_graph_has_read_are_not_read_again_unless_written_since():
    table, sums = tf.Variable([[1.0], [2.0], [3.0]]), tf.Variable(tf.zeros([3, 1]))
    update = RowAdagradOfCopies(table, sums)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def steps(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
        gradient = tape.gradient(loss, table)
        for _ in range(2):  # by the same gradient 2 w, so that the second must not take old rows
            update(gradient, tf.constant(0.5), tf.constant(0.0))

    read = [
        operation
        for operation in steps.get_concrete_function().graph.get_operations()
        if operation.type == "ResourceGather"
    ]
    assert len(read) == 4  # the table for the model and for the second update, the sums for both
    steps(tf.constant([2, 0]))
    # Of w = 3: g = 6, sums 36 and 72, w - 6/6/2 - 6/sqrt(72)/2.
    moved = 0.5 + 0.5 / np.sqrt(2)
    np.testing.assert_allclose(table[:, 0], [1 - moved, 2.0, 3 - moved], rtol=1e-6)
    np.testing.assert_allclose(sums[:, 0], [2 * 2.0**2, 0.0, 2 * 6.0**2])
