"""Sums of the rows of a table by text, against NumPy, in the ways of both stacks on either."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
import tensorflow as tf

from tests.graphs import nodes_of_functions, operations_in
from tf_smoothclir.ops import table_sum as module
from tf_smoothclir.ops.row_sums import segment_sum_by_segments
from tf_smoothclir.ops.table_sum import sum_by_matrix, table_sum, table_sum_of_distinct
from tf_smoothclir.utils import devices

GPUS = tf.config.list_physical_devices("GPU")
SIZE, DIM = 7, 3
TEXTS = {
    "words come twice, within a text and in two": [[2, 2, 3], [6], [3, 5, 2, 2]],
    "empty texts at both ends and in between": [[], [2, 3], [], [], [1], []],
    "one text": [[4, 0]],
    "one text without words": [[]],
    "no text": [],
}
# Which texts have no gradient.
WITHOUT = {"none": slice(0), "first": slice(1), "last": slice(-1, None), "all": slice(None)}


@pytest.fixture(params=[segment_sum_by_segments, sum_by_matrix], ids=["by segments", "by matrix"])
def kernel(request, monkeypatch):
    monkeypatch.setattr(module, "_kernel", request.param)


@pytest.fixture(params=[False, True], ids=["CPU", "GPU"])
def device(request, monkeypatch):
    """The device that graphs are traced for; operations for a GPU also run on a CPU."""
    if GPUS and not request.param:
        pytest.skip("graphs run on the GPU here")
    monkeypatch.setattr(devices, "has_gpu", lambda: request.param)


@pytest.fixture
def on_a_cpu():
    with tf.device("CPU"):
        yield


def flat(texts):
    ids = tf.constant([word for text in texts for word in text], tf.int32)
    lengths = tf.constant([len(text) for text in texts], tf.int32)
    return ids, tf.repeat(tf.range(len(texts)), lengths), lengths


def sums_and_gradient(table, texts, upstream, **options):
    """Returns the sums, and the gradient of the table if that of the sums is `upstream`."""
    return step_of(table, table_sum, 3, **options)(upstream, *flat(texts))


@tf.autograph.experimental.do_not_convert
def step_of(table, summed, number, **options):
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


class Traced:
    """The steps of a random table; those of a kernel and a device are traced once."""

    def __init__(self):
        self.table, self._steps = random_table(), {}

    def sums_and_gradient(self, texts, upstream, **options):
        return self.step(table_sum, 3, **options)(upstream, *flat(texts))

    def step(self, summed, number, **options):
        key = summed, module._kernel, devices.has_gpu(), *options.items()
        if key not in self._steps:
            self._steps[key] = step_of(self.table, summed, number, **options)
        return self._steps[key]


@pytest.fixture(scope="module")
def traced():
    return Traced()


def some_gradient(number, without=slice(0)):
    upstream = np.random.default_rng(2).normal(size=(number, DIM)).astype("f4")
    upstream[without] = 0
    return upstream


@pytest.mark.usefixtures("kernel", "device")
@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
@pytest.mark.parametrize("case", TEXTS)
def test_sums_and_their_gradient(traced, case, without):
    texts = TEXTS[case]
    upstream = some_gradient(len(texts), without)
    sums, gradient = traced.sums_and_gradient(texts, upstream)

    rows = traced.table.numpy()
    expected = np.reshape([rows[text].sum(axis=0) for text in texts], [len(texts), DIM])
    np.testing.assert_allclose(sums, expected, rtol=1e-6, atol=1e-6)

    expected = np.zeros_like(rows)
    for text, its_gradient in zip(texts, upstream):
        np.add.at(expected, text, its_gradient)
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected, rtol=1e-6, atol=1e-7)
    with_gradient = [text for text, row in zip(texts, upstream) if row.any()]
    assert sorted(gradient.indices.numpy()) == sorted({w for text in with_gradient for w in text})
    assert gradient.values.shape == (len(gradient.indices), DIM)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
@pytest.mark.parametrize("case", TEXTS)
def test_all_rows_are_named_on_request(traced, case, without):
    texts = TEXTS[case]
    upstream = some_gradient(len(texts), without)
    _, some = traced.sums_and_gradient(texts, upstream)
    _, every = traced.sums_and_gradient(texts, upstream, names_all_rows=True)
    assert sorted(every.indices.numpy()) == sorted({word for text in texts for word in text})
    np.testing.assert_array_equal(tf.convert_to_tensor(every), tf.convert_to_tensor(some))


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("without", WITHOUT.values(), ids=WITHOUT)
@pytest.mark.parametrize("case", TEXTS)
def test_known_distinct_rows_are_not_searched_again(traced, case, without):
    texts = TEXTS[case]
    upstream = some_gradient(len(texts), without)
    ids, of_tokens, lengths = flat(texts)
    distinct, positions = tf.unique(ids)
    step = traced.step(table_sum_of_distinct, 4)
    sums, gradient = step(upstream, distinct, positions, of_tokens, lengths)
    expected, every = traced.sums_and_gradient(texts, upstream, names_all_rows=True)
    np.testing.assert_array_equal(sums, expected)
    np.testing.assert_array_equal(gradient.indices, distinct)
    np.testing.assert_allclose(
        tf.convert_to_tensor(gradient), tf.convert_to_tensor(every), rtol=1e-6, atol=1e-7
    )
    assert "Unique" not in operations_in(step.get_concrete_function().graph)


@pytest.mark.usefixtures("kernel", "device")
def test_a_gradient_in_one_dimension_or_of_nan_counts():
    upstream = np.zeros([3, DIM], "f4")
    upstream[0, 2], upstream[2, 1] = 1, np.nan
    _, gradient = sums_and_gradient(random_table(), [[2, 3], [4], [5]], upstream)
    found = dict(zip(gradient.indices.numpy().tolist(), gradient.values.numpy().tolist()))
    assert set(found) == {2, 3, 5}
    assert found[2] == found[3] == [0, 0, 1]
    np.testing.assert_array_equal(np.isnan(found[5]), [False, True, False])


@pytest.mark.skipif(GPUS, reason="TensorFlow does not check ids on a GPU")
@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("word", [-1, SIZE, 10 * SIZE])
def test_an_id_that_is_no_row_is_refused(word):
    with pytest.raises(tf.errors.InvalidArgumentError):
        sums_and_gradient(random_table(), [[2], [3, word]], some_gradient(2))


@pytest.mark.usefixtures("kernel")
def test_sums_of_many_texts_are_reproducible():
    if module._kernel is sum_by_matrix and GPUS:
        pytest.skip("its products add in no fixed order on a GPU, where training does not use it")
    rng = np.random.default_rng(4)
    texts = [rng.integers(0, 500, length).tolist() for length in rng.integers(100, 200, 128)]
    table = tf.Variable(rng.normal(size=(500, 64)).astype("f4"))
    upstream = rng.normal(size=(128, 64)).astype("f4") * (np.arange(128) % 4 == 0)[:, np.newaxis]
    first, second = (sums_and_gradient(table, texts, upstream) for _ in range(2))
    np.testing.assert_array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1].indices, second[1].indices)
    np.testing.assert_array_equal(first[1].values, second[1].values)


@pytest.mark.usefixtures("kernel", "on_a_cpu")  # the place of a value elsewhere cannot be read
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


def test_the_gradient_does_not_keep_its_table_alive():
    def trace():
        table = random_table()
        sums_and_gradient(table, [[2, 3]], some_gradient(1))
        return weakref.ref(table)

    table = trace()
    gc.collect()
    assert table() is None
