"""What all optimizers share: names, policies, equal rows, and no operation dense in the table."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.graphs import operations_in
from tests.optimizers.small_table import DIM, RATE, random_gradients, run, slices, table
from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.optimizers import (
    LEARNING_RATE,
    OPTIMIZERS,
    LazyAdam,
    SparseRMSprop,
    make_optimizer,
)
from tf_smoothclir.optimizers.gradients import clipped
from tf_smoothclir.optimizers.sparse_adagrad import SparseAdagrad
from tf_smoothclir.optimizers.sparse_optimizer import GradientPolicy, gradient_policy

KINDS = [*OPTIMIZERS.values(), SparseAdagrad]
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_as_they_are_made_for_training(name):
    optimizer = make_optimizer(name, 0.25)
    assert type(optimizer) is OPTIMIZERS[name]
    assert optimizer.learning_rate.numpy() == 0.25
    assert make_optimizer(name).learning_rate.numpy() == pytest.approx(LEARNING_RATE)
    policy = gradient_policy(optimizer)
    assert policy.names_all_rows == (name == "lazy_adam")
    assert policy.unique_rows == (name != "adam")
    assert (policy.loss_scale() != 1.0) == (name == "rmsprop")
    assert gradient_policy(OPTIMIZERS[name]()).loss_scale() == 1.0


def test_an_optimizer_of_keras_asks_nothing_of_gradients():
    assert gradient_policy(keras.optimizers.SGD()) == GradientPolicy()


@every_kind
def test_rows_named_twice_count_once_with_their_sum(kind):
    twice = slices([2, 4, 2], [[1, 2, 3], [5, 5, 5], [10, 20, 30]])
    once = slices([2, 4], [[11, 22, 33], [5, 5, 5]])
    for found, expected in zip(run(kind(RATE), [twice]), run(kind(RATE), [once]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@every_kind
def test_gradients_of_zero_move_nothing_and_stay_finite(kind):
    # A score inside the segment of its grade has gradient 0, also in a row that is new.
    variable, *slots = run(kind(RATE), [slices([2, 3], np.zeros([2, DIM]))] * 3)
    np.testing.assert_array_equal(variable, table())
    assert not any(slot.any() for slot in slots)


@every_kind
def test_learning_rate_schedule_is_followed(kind):
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.1, 0.0])
    first, second = random_gradients(steps=2)
    once = run(kind(schedule), [slices([1], first[[1]])])
    twice = run(kind(schedule), [slices([1], g[[1]]) for g in (first, second)])
    assert (once[0][1] != table()[1]).all()
    np.testing.assert_array_equal(twice[0], once[0])  # from step 1 on the rate is 0
    assert (twice[1][1] != once[1][1]).all()


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (LazyAdam, {"beta_1": 0.8, "beta_2": 0.99, "global_clipnorm": 2.0, "unique_rows": True}),
        *((kind, {}) for kind in KINDS if kind is not LazyAdam),
        (SparseRMSprop, {"rho": 0.8, "unique_rows": True, "scaled_gradients": True}),
    ],
)
def test_config_round_trip_continues_as_the_original(kind, options):
    optimizer = kind(0.03, epsilon=1e-4, **options)
    restored = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(restored) is kind
    assert restored.get_config() == optimizer.get_config()
    gradients = [slices([1, 4], g[[1, 4]]) for g in random_gradients(steps=2)]
    for found, expected in zip(run(restored, gradients), run(optimizer, gradients)):
        np.testing.assert_array_equal(found, expected)


def graph_of(optimizer, rows=977):
    """The graph of a step on a table with a number of rows that no other shape has."""
    variable = tf.Variable(tf.zeros([rows, DIM]))
    optimizer.build([variable])

    @tf.function(input_signature=[tf.TensorSpec([None, DIM]), tf.TensorSpec([None], tf.int32)])
    def step(values, indices):
        gradient = tf.IndexedSlices(values, indices, tf.constant([rows, DIM]))
        optimizer.apply_gradients([(gradient, variable)])

    return step.get_concrete_function().graph


@pytest.mark.parametrize("kind", [LazyAdam, SparseRMSprop])
def test_no_operation_of_the_graph_is_dense_in_the_table(kind):
    graph = graph_of(kind(RATE, global_clipnorm=5.0))
    graphs = [graph, *(function.graph for function in graph._functions.values())]
    operations = [operation for one in graphs for operation in one.get_operations()]
    tensors = [output for operation in operations for output in operation.outputs]
    assert [tensor.name for tensor in tensors if tensor.shape.rank and 977 in tensor.shape] == []
    if kind is LazyAdam:
        types = {operation.type for operation in operations}
        assert {"ResourceGather", "ResourceScatterUpdate"} <= types
        assert ("ResourceScatterSub" in types) != ON_KERAS_3  # where it is slow


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"adam"}))
def test_unique_rows_save_the_search_for_rows_named_twice(name):
    assert "Unique" in operations_in(graph_of(OPTIMIZERS[name]()))
    assert "Unique" not in operations_in(graph_of(make_optimizer(name)))


@pytest.mark.parametrize("norm", [0.5, 4.0])
def test_clipped_scales_sparse_and_dense_gradients_only_above_the_limit(norm):
    dense, sparse = tf.constant([[3.0]]), slices([1], [[0.0, 4.0, 0.0]])
    # The norm is a parameter of its own: the caller has computed it.
    found = clipped([dense, sparse], tf.constant(norm), 2.0)
    factor = min(1.0, 2.0 / norm)
    np.testing.assert_allclose(found[0], [[3.0 * factor]])
    np.testing.assert_allclose(found[1].values, [[0.0, 4.0 * factor, 0.0]])
    np.testing.assert_array_equal(found[1].indices, [1])
