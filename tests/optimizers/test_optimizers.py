"""Optimizers: what all share, each as that of Keras or by hand; means of weights over epochs."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.cases import cases
from tests.graphs import operations_in
from tf_smoothclir import optimizers as module
from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.optimizers import OPTIMIZERS, LazyAdam, RowRMSprop, SparseRMSprop, make_optimizer
from tf_smoothclir.optimizers.gradients import clipped
from tf_smoothclir.optimizers.sparse_rmsprop import SparseAdagrad

ROWS, DIM = 6, 3
RATE = 0.1
_SLOTS = "_momentums", "_velocities", "_accumulators", "_mean_squares"
every_kind = cases("kind", *OPTIMIZERS.values(), SparseAdagrad)
OPTIONS = {
    LazyAdam: {"beta_1": 0.8, "beta_2": 0.99, "global_clipnorm": 2.0, "unique_rows": True},
    SparseRMSprop: {"rho": 0.8, "unique_rows": True},
}
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-7
sparse_and_dense = cases("sparse", True, False, ids=["sparse", "dense"])


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, DIM)).astype("f4")


def slices(rows, values):
    values = tf.constant(np.asarray(values, "f4"))
    return tf.IndexedSlices(values, tf.constant(rows, tf.int32), tf.constant([ROWS, DIM]))


def random_gradients(steps, seed=1):
    return np.random.default_rng(seed).normal(size=(steps, ROWS, DIM)).astype("f4")


def run(optimizer, gradients):
    """Applies gradients one after the other; returns the variable and its slots."""
    variable = tf.Variable(table())
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    slots = [getattr(optimizer, name)[0] for name in _SLOTS if hasattr(optimizer, name)]
    return [value.numpy() for value in (variable, *slots)]


@cases("name", *OPTIMIZERS)
def test_optimizers_as_they_are_made_for_training(name):
    optimizer = make_optimizer(name, 0.25)
    assert type(optimizer) is OPTIMIZERS[name]
    assert optimizer.learning_rate.numpy() == 0.25
    assert make_optimizer(name).learning_rate.numpy() == pytest.approx(module.LEARNING_RATE)
    assert getattr(optimizer, "names_all_rows", False) == (name == "lazy_adam")
    assert getattr(optimizer, "unique_rows", False) == (name != "adam")


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


@every_kind
def test_config_round_trip_continues_as_the_original(kind):
    optimizer = kind(0.03, epsilon=1e-4, **OPTIONS.get(kind, {}))
    restored = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(restored) is kind
    assert restored.get_config() == optimizer.get_config()
    gradients = [slices([1, 4], g[[1, 4]]) for g in random_gradients(steps=2)]
    np.testing.assert_equal(run(restored, gradients), run(optimizer, gradients))


def graph_of(optimizer, rows=977):
    """The graph of a step on a table with a number of rows that no other shape has."""
    variable = tf.Variable(tf.zeros([rows, DIM]))
    optimizer.build([variable])

    @tf.function(input_signature=[tf.TensorSpec([None, DIM]), tf.TensorSpec([None], tf.int32)])
    def step(values, indices):
        gradient = tf.IndexedSlices(values, indices, tf.constant([rows, DIM]))
        optimizer.apply_gradients([(gradient, variable)])

    return step.get_concrete_function().graph


@cases("kind", LazyAdam, SparseRMSprop)
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


@cases("name", *sorted(set(OPTIMIZERS) - {"adam"}))
def test_unique_rows_save_the_search_for_rows_named_twice(name):
    assert "Unique" in operations_in(graph_of(OPTIMIZERS[name]()))
    assert "Unique" not in operations_in(graph_of(make_optimizer(name)))


@cases("norm", 0.5, 4.0)
def test_clipped_scales_sparse_and_dense_gradients_only_above_the_limit(norm):
    dense, sparse = tf.constant([[3.0]]), slices([1], [[0.0, 4.0, 0.0]])
    # The norm is a parameter of its own: the caller has computed it.
    found = clipped([dense, sparse], tf.constant(norm), 2.0)
    factor = min(1.0, 2.0 / norm)
    np.testing.assert_allclose(found[0], [[3.0 * factor]])
    np.testing.assert_allclose(found[1].values, [[0.0, 4.0 * factor, 0.0]])
    np.testing.assert_array_equal(found[1].indices, [1])


def adam_step(step, weight, moment, velocity, gradient):
    """One step of Adam on one row (Kingma and Ba 2015, section 2, second formulation)."""
    moment = BETA_1 * moment + (1 - BETA_1) * gradient
    velocity = BETA_2 * velocity + (1 - BETA_2) * gradient**2
    rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
    return weight - rate * moment / (np.sqrt(velocity) + EPSILON), moment, velocity


def dense():
    return [tf.constant(gradient) for gradient in random_gradients(steps=7)]


def all_rows():
    order = [3, 0, 5, 1, 4, 2]
    return [slices(order, gradient[order]) for gradient in random_gradients(steps=7)]


def some_rows():
    rows = [[1, 4], [2], [5, 0], [1], [3], [4, 2], [0]]
    return [slices(r, g[r]) for r, g in zip(rows, random_gradients(steps=7))]


@cases("gradients, options", (dense, {}), (all_rows, {}), (some_rows, {"amsgrad": True}))
def test_lazy_adam_is_adam_bitwise_where_every_row_is_touched_and_with_amsgrad(gradients, options):
    lazy = run(LazyAdam(RATE, **options), gradients())
    adam = run(keras.optimizers.Adam(RATE, **options), dense() if not options else gradients())
    np.testing.assert_equal(lazy, adam)


@cases("gradients", dense, some_rows)
@cases("options", {}, {"beta_1": 0.5, "beta_2": 0.9, "epsilon": 0.01}, {"amsgrad": True}, ids=str)
def test_fused_adam_is_adam(gradients, options):
    found = run(module.FusedAdam(RATE, **options), gradients())
    expected = run(keras.optimizers.Adam(RATE, **options), gradients())
    for ours, theirs in zip(found, expected, strict=True):  # the kernel has 1 - beta_2 in float32
        np.testing.assert_allclose(ours, theirs, rtol=5e-5, atol=5e-6)


def test_lazy_adam_by_hand_where_rows_pause_and_others_are_never_touched():
    # In a pause, moments stay, but the steps that the bias correction counts go on.
    gradients = random_gradients(steps=5).astype("f8")
    rows = [[1, 2], [2], [2, 3], [], [1]]
    found = run(LazyAdam(RATE), [slices(r, g[r]) for r, g in zip(rows, gradients)])
    expected = np.stack([table().astype("f8"), *np.zeros([2, ROWS, DIM])])
    for step, (named, gradient) in enumerate(zip(rows, gradients), 1):
        expected[:, named] = adam_step(step, *expected[:, named], gradient[named])
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(found[0][[0, 4, 5]], table()[[0, 4, 5]])


@cases("limit", 0.5, 3.0, 1e6)
def test_global_clipnorm_with_sparse_gradients_by_hand(limit):
    rows, values = [[0, 3], [5, 1, 2]], [table(3)[:2], table(4)[:3]]
    scale = min(1.0, limit / np.sqrt(sum((v.astype("f8") ** 2).sum() for v in values)))
    variables = [tf.Variable(table()) for _ in values]
    optimizer = LazyAdam(RATE, global_clipnorm=limit)
    optimizer.build(variables)
    optimizer.apply_gradients(zip(map(slices, rows, values), variables))
    for moment, named, value in zip(optimizer._momentums, rows, values, strict=True):
        np.testing.assert_allclose(moment.numpy()[named], 0.1 * scale * value, rtol=1e-5)


@cases("rho", 0.5, 0.9, 0.99)
@sparse_and_dense
def test_rmsprop_is_adam_without_momentum_whichever_rows_are_touched(rho, sparse):
    # Gradients of many magnitudes; with rho 0.5 the accumulators are scaled down seven times.
    rng = np.random.default_rng(5)
    ours = SparseRMSprop(RATE, rho=rho, epsilon=EPSILON)
    keras_adam = keras.optimizers.Adam(RATE, beta_1=0.0, beta_2=rho, epsilon=EPSILON)
    pairs = [(ours, tf.Variable(table())), (keras_adam, tf.Variable(table()))]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, DIM])])
    def step(rows, values):
        gradient = tf.IndexedSlices(values, rows, tf.constant([ROWS, DIM]))
        if not sparse:
            gradient = tf.convert_to_tensor(gradient)
        for optimizer, variable in pairs:
            optimizer.apply_gradients([(gradient, variable)])

    for optimizer, variable in pairs:
        optimizer.build([variable])
    for _ in range(300):
        rows = rng.permutation(ROWS)[: rng.integers(1, ROWS)].astype("i4")
        scale = 10.0 ** rng.integers(-9, 0)
        step(tf.constant(rows), tf.constant(rng.normal(size=(len(rows), DIM)) * scale, tf.float32))
    np.testing.assert_allclose(pairs[0][1], pairs[1][1], atol=1e-5)
    assert np.abs(pairs[0][1] - table()).max() > 0.5


@cases("rho", 0.5, 0.999)
@sparse_and_dense
def test_row_rmsprop_by_its_formulas(sparse, rho):
    gradients = random_gradients(steps=30)
    touched = [1, 4] if sparse else list(range(ROWS))
    variable = tf.Variable(table())
    optimizer = RowRMSprop(RATE, rho=rho, epsilon=EPSILON)
    optimizer.build([variable])
    step = tf.function(lambda gradient: optimizer.apply_gradients([(gradient, variable)]))
    expected, squares = table().astype("f8"), np.zeros((ROWS, 1))
    for number, gradient in enumerate(gradients, 1):
        step(slices(touched, gradient[touched]) if sparse else tf.constant(gradient))
        squares *= rho
        squares[touched] += (1 - rho) * (gradient[touched] ** 2).mean(axis=1, keepdims=True)
        pace = RATE * np.sqrt(1 - rho**number) / (np.sqrt(squares[touched]) + EPSILON)
        expected[touched] -= pace * gradient[touched]
    np.testing.assert_allclose(variable, expected, atol=1e-5)
    assert np.abs(variable - table())[touched].min() > 0.01
    assert optimizer._mean_squares[0].shape == (ROWS, 1)  # one number for a row


def test_rmsprops_of_rows_of_one_number_are_adam_without_momentum():
    # Mean squares over one number are its square: weights of tokens, positions, thresholds.
    for start in (np.ones([5], "f4"), np.ones([5, 1], "f4"), np.float32(1.0)):
        adam = keras.optimizers.Adam(RATE, beta_1=0.0, beta_2=0.9)
        variables = []
        for optimizer in (adam, RowRMSprop(RATE, rho=0.9), SparseRMSprop(RATE, rho=0.9)):
            variable = tf.Variable(start)
            optimizer.build([variable])
            for seed in range(20):
                gradient = np.random.default_rng(seed).normal(size=start.shape).astype("f4")
                optimizer.apply_gradients([(tf.constant(gradient), variable)])
            variables.append(variable.numpy())
        for found in variables[1:]:
            np.testing.assert_allclose(found, variables[0], rtol=1e-4)
            assert np.abs(found - start).min() > 0


@cases("kind", SparseRMSprop, RowRMSprop)
@cases("rho", 0.0, 1.0, -0.5, 1.5)
def test_a_rho_that_is_no_decay_is_refused(kind, rho):
    with pytest.raises(ValueError, match="rho must be inside"):
        kind(rho=rho)
