"""Updates of rows: the kernels of both stacks do the same, on either stack."""

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.ops.row_updates import (
    RowAdagradInPlace,
    RowAdagradOfCopies,
    take_off_rows_in_place,
    take_off_rows_of_copies,
)


@pytest.mark.parametrize("kind", [RowAdagradInPlace, RowAdagradOfCopies])
def test_row_adagrad_by_hand_and_other_rows_stay(kind):
    rng = np.random.default_rng(6)
    before, squares = rng.normal(size=(5, 3)).astype("f4"), rng.random((5, 3)).astype("f4")
    table, sums = tf.Variable(before), tf.Variable(squares)
    update = tf.function(kind(table, sums))
    expected, expected_sums_of_squares = before.copy(), squares.copy()
    for rows in ([3, 1], [], [1]):
        gradient = rng.normal(size=(len(rows), 3)).astype("f4")
        slices = tf.constant(gradient), tf.constant(rows, tf.int32), tf.constant([5, 3])
        update(tf.IndexedSlices(*slices), tf.constant(0.1), tf.constant(1e-3))
        expected_sums_of_squares[rows] += gradient**2
        root = np.sqrt(expected_sums_of_squares[rows])
        expected[rows] -= np.float32(0.1) * gradient / (root + np.float32(1e-3))
    np.testing.assert_allclose(table, expected, rtol=1e-5)
    np.testing.assert_allclose(sums, expected_sums_of_squares, rtol=1e-6)
    np.testing.assert_array_equal(table.numpy()[[0, 2, 4]], before[[0, 2, 4]])


@pytest.mark.parametrize("take_off", [take_off_rows_in_place, take_off_rows_of_copies])
@pytest.mark.parametrize("rows", [[3, 1], []], ids=["two rows", "none"])
def test_take_off_rows_changes_no_other_row(take_off, rows):
    table = tf.Variable(tf.reshape(tf.range(10.0), [5, 2]))
    expected = table.numpy()
    change = np.full([len(rows), 2], 0.25, np.float32)
    tf.function(take_off)(table, tf.constant(rows, tf.int32), tf.constant(change))
    expected[rows] -= 0.25
    np.testing.assert_array_equal(table, expected)


@pytest.mark.parametrize("ids", [[2, 0], [[2], [0]]], ids=["flat", "in two dimensions"])
@pytest.mark.parametrize("traced", [True, False], ids=["of the graph", "constant"])
def test_rows_are_read_however_they_are_named(ids, traced):
    table, ids = tf.Variable([[1.0], [2.0], [3.0]]), tf.constant(ids)

    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids))
        gradient = tape.gradient(loss, table)
        take_off_rows_of_copies(table, gradient.indices, gradient.values)

    tf.function(step)(ids) if traced else tf.function(lambda: step(ids))()
    step(ids)  # outside of a graph
    np.testing.assert_array_equal(table[:, 0], [1 - 2, 2, 3 - 2])


def test_rows_are_read_a_second_time_only_after_a_write():
    table, sums = tf.Variable([[1.0], [2.0], [3.0]]), tf.Variable(tf.zeros([3, 1]))
    update = RowAdagradOfCopies(table, sums)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)])
    def steps(rows):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, rows) ** 2)
        gradient = tape.gradient(loss, table)
        for _ in range(2):  # by the same gradient 2 w, so that the second must not take old rows
            update(gradient, tf.constant(0.5), tf.constant(0.0))

    operations = steps.get_concrete_function().graph.get_operations()
    # The table is read for the model and for the second update, the sums for both.
    assert [operation.type for operation in operations].count("ResourceGather") == 4
    steps(tf.constant([2, 0]))
    # Of w = 3: g = 6, sums 36 and 72, w - 6/6/2 - 6/sqrt(72)/2.
    moved = 0.5 + 0.5 / np.sqrt(2)
    np.testing.assert_allclose(table[:, 0], [1 - moved, 2.0, 3 - moved], rtol=1e-6)
    np.testing.assert_allclose(sums[:, 0], [2 * 2.0**2, 0.0, 2 * 6.0**2])
