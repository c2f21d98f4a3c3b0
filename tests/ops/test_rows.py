"""Sums and updates of rows: the kernels of both stacks do the same, on either."""

import gc
import itertools
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.graphs import nodes_of_functions, operations_in
from tf_smoothclir.ops import row_sums, row_updates
from tf_smoothclir.ops import table_sum as table_sum_module
from tf_smoothclir.ops.table_sum import sum_by_matrix, table_sum, table_sum_of_distinct
from tf_smoothclir.utils import devices

GPUS = tf.config.list_physical_devices("GPU")
# Positions and ascending rows of pairs, number of rows, size of the result.
PAIRS = {
    "rows are skipped, others come twice": ([3, 0, 3, 1, 1, 1], [0, 0, 2, 2, 4, 4], 5, 6),
    "one pair": ([0], [0], 1, 1),
    "no pair": ([], [], 3, 4),
    "nothing at all": ([], [], 0, 0),
}
SIZE, DIM = 7, 3
TEXTS = {
    "words come twice, within a text and in two": [[2, 2, 3], [6], [3, 5, 2, 2]],
    "empty texts at both ends and in between": [[], [2, 3], [], [], [1], []],
    "one text without words": [[]],
    "no text": [],
}
# Which texts have no gradient.
WITHOUT = {"none": slice(0), "first": slice(1), "last": slice(-1, None), "all": slice(None)}


def expected_sums(positions, values, rows, size):
    result = np.zeros([size, values.shape[1]])
    for position, row in zip(positions, rows):
        result[position] += values[row]
    return result


@cases("kernel", row_sums.sums_at_by_segments, row_sums.sums_at_by_matrix)
@cases("case", *PAIRS)
@cases("dim", 1, 3)
@cases("index_type", tf.int32, tf.int64, ids=["int32", "int64"])
def test_sums_at(kernel, case, dim, index_type):
    positions, rows, number, size = PAIRS[case]
    values = np.random.default_rng(3).normal(size=(number, dim)).astype("f4")
    pairs = tf.constant(positions, index_type), tf.constant(values), tf.constant(rows, tf.int32)
    found = tf.function(kernel)(*pairs, tf.constant(size))
    assert found.shape == (size, dim)
    np.testing.assert_allclose(found, expected_sums(positions, values, rows, size), rtol=1e-6)


@cases(
    "kernel, case",
    *itertools.product([row_sums.segment_sum_by_segments, row_sums.segment_sum_by_matrix], PAIRS),
    *((None, name) for name in PAIRS if name != "no pair"),  # TensorFlow's own is undefined
)
def test_segment_sum_and_its_gradient(case, kernel, monkeypatch):
    monkeypatch.setattr(row_sums, "segment_sum_kernel", lambda: kernel)
    training = kernel is not None
    positions, segments, number, size = PAIRS[case]
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(size, 3)).astype("f4")
    weights = rng.normal(size=(number, 3)).astype("f4")

    def value_and_gradient(rows):
        with tf.GradientTape() as tape:
            tape.watch(rows)
            pairs = [tf.constant(numbers, tf.int32) for numbers in (positions, segments)]
            sums = row_sums.segment_sum(rows, *pairs, number, training=training)
            total = tf.reduce_sum(weights * sums)
        return sums, tape.gradient(total, rows)

    expected = expected_sums(segments, rows, positions, number)
    expected_gradient = expected_sums(positions, weights, segments, size)
    for run in (tf.function(value_and_gradient), value_and_gradient):  # in a graph, and eagerly
        sums, gradient = run(tf.constant(rows))
        np.testing.assert_allclose(sums, expected, rtol=1e-6)
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected_gradient, rtol=1e-6)


@cases("training", True, False)
def test_take_and_its_gradient(training):
    rows = np.random.default_rng(7).normal(size=(4, 3)).astype("f4")
    positions = np.array([2, 0, 2, 2], "i4")
    weights, watched = np.arange(12, dtype="f4").reshape(4, 3), tf.constant(rows)
    with tf.GradientTape() as tape:
        tape.watch(watched)
        taken = row_sums.take(watched, tf.constant(positions), training=training)
        total = tf.reduce_sum(weights * taken)
    np.testing.assert_array_equal(taken, rows[positions])
    expected = expected_sums(positions, weights, range(4), 4)
    np.testing.assert_allclose(tf.convert_to_tensor(tape.gradient(total, watched)), expected)


def test_gradients_are_made_by_the_kernel_of_the_stack():
    @tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([None], tf.int32)])
    def gradients(rows, positions):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(rows)
            sums = row_sums.segment_sum(rows, positions, positions, 5, training=True)
            taken = row_sums.take(rows, positions, training=True)
        return tape.gradient(sums, rows), tape.gradient(taken, rows)

    nodes = [node.op for node in nodes_of_functions(gradients.get_concrete_function().graph)]
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
                total = row_sums.segment_sum(rows, positions, positions, 5, training=True)
                total += row_sums.take(rows, positions, training=True)
                total += table_sum(table, positions, positions, tf.ones_like(positions))
            return tf.convert_to_tensor(tape.gradient(total, table))

        step(tf.constant([0, 1, 2, 3, 4]))
        return weakref.ref(table)

    table = trace()
    gc.collect()
    assert table() is None


@cases("kind", row_updates.RowAdagradInPlace, row_updates.RowAdagradOfCopies)
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


@cases("ids", [2, 0], [[2], [0]], ids=["flat", "in two dimensions"])
@cases("traced", True, False, ids=["of the graph", "constant"])
def test_rows_are_read_however_they_are_named(ids, traced):
    table, ids = tf.Variable([[1.0], [2.0], [3.0]]), tf.constant(ids)

    def step(ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, ids))
        gradient = tape.gradient(loss, table)
        row_updates.take_off_rows_of_copies(table, gradient.indices, gradient.values)

    tf.function(step)(ids) if traced else tf.function(lambda: step(ids))()
    step(ids)  # outside of a graph
    np.testing.assert_array_equal(table[:, 0], [1 - 2, 2, 3 - 2])


def test_rows_are_read_a_second_time_only_after_a_write():
    table, sums = tf.Variable([[1.0], [2.0], [3.0]]), tf.Variable(tf.zeros([3, 1]))
    update = row_updates.RowAdagradOfCopies(table, sums)

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


@pytest.fixture(
    params=[row_sums.segment_sum_by_segments, sum_by_matrix], ids=["segments", "matrix"]
)
def kernel(request, monkeypatch):
    monkeypatch.setattr(table_sum_module, "_kernel", request.param)


@pytest.fixture(params=[False, True], ids=["CPU", "GPU"])
def device(request, monkeypatch):
    """The device that graphs are traced for; operations for a GPU also run on a CPU."""
    if GPUS and not request.param:
        pytest.skip("graphs run on the GPU here")
    monkeypatch.setattr(devices, "has_gpu", lambda: request.param)


def flat(texts):
    ids = tf.constant([word for text in texts for word in text], tf.int32)
    lengths = tf.constant([len(text) for text in texts], tf.int32)
    return ids, tf.repeat(tf.range(len(texts)), lengths), lengths


@tf.autograph.experimental.do_not_convert
def step_of(table, summed=table_sum, number=3, **options):
    """A graph of sums of a table, which takes what their gradient is and `number` lists of ints."""
    upstream = tf.TensorSpec([None, None], tf.float32)

    @tf.function(input_signature=[upstream, *[tf.TensorSpec([None], tf.int32)] * number])
    def step(upstream, *tokens):
        with tf.GradientTape() as tape:
            sums = summed(table, *tokens, **options)
        return sums, tape.gradient(sums, table, output_gradients=upstream)

    return step


def random_table():
    return tf.Variable(np.random.default_rng(1).normal(size=(SIZE, DIM)).astype("f4"))


def some_gradient(number, without=slice(0)):
    upstream = np.random.default_rng(2).normal(size=(number, DIM)).astype("f4")
    upstream[without] = 0
    return upstream


@pytest.mark.usefixtures("kernel", "device")
def test_sums_and_their_gradient_and_the_rows_that_it_names():
    table = random_table()
    rows = table.numpy()
    plain, every = step_of(table), step_of(table, names_all_rows=True)
    of_distinct = step_of(table, table_sum_of_distinct, 4)
    for texts, without in itertools.product(TEXTS.values(), WITHOUT.values()):
        upstream = some_gradient(len(texts), without)
        expected = np.reshape([rows[text].sum(axis=0) for text in texts], [len(texts), DIM])
        expected_gradient = np.zeros_like(rows)
        for text, its_gradient in zip(texts, upstream):
            np.add.at(expected_gradient, text, its_gradient)
        with_gradient = [text for text, row in zip(texts, upstream) if row.any()]

        ids, *others = flat(texts)
        distinct, positions = tf.unique(ids)
        for step, tokens, named in (
            (plain, (ids, *others), sorted({w for text in with_gradient for w in text})),
            (every, (ids, *others), sorted({word for text in texts for word in text})),
            (of_distinct, (distinct, positions, *others), distinct.numpy().tolist()),
        ):
            sums, gradient = step(upstream, *tokens)
            np.testing.assert_allclose(sums, expected, rtol=1e-6, atol=1e-6)
            dense = tf.convert_to_tensor(gradient)
            np.testing.assert_allclose(dense, expected_gradient, rtol=1e-6, atol=1e-7)
            found = gradient.indices.numpy().tolist()
            assert (found if step is of_distinct else sorted(found)) == named
            assert gradient.values.shape == (len(named), DIM)
    # Known distinct rows are not searched again.
    assert "Unique" not in operations_in(of_distinct.get_concrete_function().graph)


@pytest.mark.usefixtures("kernel", "device")
def test_a_gradient_in_one_dimension_or_of_nan_counts():
    upstream = np.zeros([3, DIM], "f4")
    upstream[0, 2], upstream[2, 1] = 1, np.nan
    _, gradient = step_of(random_table())(upstream, *flat([[2, 3], [4], [5]]))
    found = dict(zip(gradient.indices.numpy().tolist(), gradient.values.numpy().tolist()))
    assert set(found) == {2, 3, 5}
    assert found[2] == found[3] == [0, 0, 1]
    np.testing.assert_array_equal(np.isnan(found[5]), [False, True, False])


@pytest.mark.skipif(bool(GPUS), reason="TensorFlow does not check ids on a GPU")
@pytest.mark.usefixtures("kernel")
@cases("word", -1, SIZE, 10 * SIZE)
def test_an_id_that_is_no_row_is_refused(word):
    with pytest.raises(tf.errors.InvalidArgumentError):
        step_of(random_table())(some_gradient(2), *flat([[2], [3, word]]))


@pytest.mark.skipif(bool(GPUS), reason="the place of a value elsewhere cannot be read")
@pytest.mark.usefixtures("kernel")
def test_reading_and_updating_never_copies_the_table():
    """Reading or updating copies the whole table if the other has not ended or prepared it."""
    table = tf.Variable(tf.ones([SIZE, DIM]))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32)] * 3)
    def step(ids, of_tokens, lengths):
        with tf.GradientTape() as tape:
            total = tf.reduce_sum(table_sum(table, ids, of_tokens, lengths))
        gradient = tape.gradient(total, table)
        table.scatter_sub(tf.IndexedSlices(gradient.values, gradient.indices))
        return total

    def place():
        tf.raw_ops.DisableCopyOnRead(resource=table.handle)
        return np.asarray(memoryview(table.read_value())).ctypes.data

    before = place()
    assert [float(step(*flat([[2], [3, 2]]))) for _ in range(3)] == [9, 9 - 5 * DIM, 9 - 10 * DIM]
    assert place() == before
    nodes = nodes_of_functions(step.get_concrete_function().graph)
    reads = [node for node in nodes if node.op == "ReadVariableOp"]
    assert reads
    assert all("^DisableCopyOnRead" in read.input for read in reads)
