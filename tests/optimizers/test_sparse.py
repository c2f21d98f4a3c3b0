"""The optimizers against Keras's Adam where they must agree, and by hand where they must not."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.optimizers import (
    LEARNING_RATES,
    OPTIMIZERS,
    LazyAdam,
    SparseAdagrad,
    SparseRMSprop,
    make_optimizer,
)
from tf_smoothclir.optimizers.gradients import clipped
from tf_smoothclir.optimizers.sparse_optimizer import gradient_policy

ROWS, DIM = 6, 3
RATE, BETA_1, BETA_2, EPSILON = 0.1, 0.9, 0.999, 1e-7


def table(seed=0):
    return np.random.default_rng(seed).normal(size=(ROWS, DIM)).astype("f4")


def slices(rows, values, variable_rows=ROWS):
    values = np.asarray(values, "f4")
    return tf.IndexedSlices(
        tf.constant(values), tf.constant(rows, tf.int32), tf.constant([variable_rows, DIM])
    )


def run(optimizer, gradients, initial=None):
    """Applies gradients one after the other; returns the variable and its two moments."""
    variable = tf.Variable(table() if initial is None else initial)
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    moments = (optimizer._momentums[0], optimizer._velocities[0])
    return [value.numpy() for value in (variable, *moments)]


def random_gradients(steps, seed=1):
    return np.random.default_rng(seed).normal(size=(steps, ROWS, DIM)).astype("f4")


def adam_step(step, weight, moment, velocity, gradient):
    """One step of Adam on one row (Kingma and Ba 2015, section 2, second formulation)."""
    moment = BETA_1 * moment + (1 - BETA_1) * gradient
    velocity = BETA_2 * velocity + (1 - BETA_2) * gradient**2
    rate = RATE * np.sqrt(1 - BETA_2**step) / (1 - BETA_1**step)
    return weight - rate * moment / (np.sqrt(velocity) + EPSILON), moment, velocity


def test_equals_adam_bitwise_where_every_row_is_touched():
    gradients = random_gradients(steps=7)
    order = [3, 0, 5, 1, 4, 2]
    lazy = run(LazyAdam(RATE), [slices(order, g[order]) for g in gradients])
    adam = run(keras.optimizers.Adam(RATE), [tf.constant(g) for g in gradients])
    for found, expected in zip(lazy, adam):
        np.testing.assert_array_equal(found, expected)


def test_dense_gradients_are_adam():
    gradients = [tf.constant(g) for g in random_gradients(steps=3)]
    for found, expected in zip(
        run(LazyAdam(RATE), gradients), run(keras.optimizers.Adam(RATE), gradients)
    ):
        np.testing.assert_array_equal(found, expected)


def test_amsgrad_falls_back_to_adam():
    gradients = [slices([1, 4], g[[1, 4]]) for g in random_gradients(steps=3)]
    for found, expected in zip(
        run(LazyAdam(RATE, amsgrad=True), gradients),
        run(keras.optimizers.Adam(RATE, amsgrad=True), gradients),
    ):
        np.testing.assert_array_equal(found, expected)


def test_untouched_rows_and_their_moments_do_not_move():
    first, second = random_gradients(steps=2)
    before = run(LazyAdam(RATE), [tf.constant(first)])
    after = run(LazyAdam(RATE), [tf.constant(first), slices([2, 5], second[[2, 5]])])
    for old, new in zip(before, after):
        np.testing.assert_array_equal(new[[0, 1, 3, 4]], old[[0, 1, 3, 4]])
        assert (new[[2, 5]] != old[[2, 5]]).all()


def test_adam_itself_would_move_untouched_rows():
    first, second = random_gradients(steps=2)
    before = run(keras.optimizers.Adam(RATE), [tf.constant(first)])
    after = run(keras.optimizers.Adam(RATE), [tf.constant(first), slices([2], second[[2]])])
    assert (after[0][0] != before[0][0]).all()


def test_row_touched_after_a_pause_by_hand():
    # Touched in steps 1 and 4: its moments decay twice, the bias correction has counted four.
    gradients = random_gradients(steps=4).astype("f8")
    rows = [[1, 2], [2], [2, 3], [1]]
    found = run(LazyAdam(RATE), [slices(r, g[r]) for r, g in zip(rows, gradients)])
    state = (table()[1].astype("f8"), 0.0, 0.0)
    for step in (1, 4):
        state = adam_step(step, *state, gradients[step - 1][1])
    for value, expected in zip(found, state):
        np.testing.assert_allclose(value[1], expected, rtol=1e-4)


def test_duplicate_rows_count_once_with_their_sum():
    twice = slices([2, 4, 2], [[1, 2, 3], [5, 5, 5], [10, 20, 30]])
    once = slices([2, 4], [[11, 22, 33], [5, 5, 5]])
    for found, expected in zip(run(LazyAdam(RATE), [twice]), run(LazyAdam(RATE), [once])):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_no_row_at_all_changes_nothing_but_the_count_of_steps():
    optimizer = LazyAdam(RATE)
    variable, moment, velocity = run(optimizer, [slices([], np.zeros([0, DIM]))])
    np.testing.assert_array_equal(variable, table())
    assert not moment.any()
    assert not velocity.any()
    assert optimizer.iterations == 1


@pytest.mark.parametrize("limit", [0.5, 3.0, 1e6])
def test_global_clipnorm_with_sparse_gradients_by_hand(limit):
    values = {"a": table(3)[:2], "b": table(4)[:3]}
    norm = np.sqrt(sum((v.astype("f8") ** 2).sum() for v in values.values()))
    scale = min(1.0, limit / norm)
    variables = {name: tf.Variable(table()) for name in values}
    optimizer = LazyAdam(RATE, global_clipnorm=limit)
    optimizer.build(list(variables.values()))
    gradients = {"a": slices([0, 3], values["a"]), "b": slices([5, 1, 2], values["b"])}
    optimizer.apply_gradients([(gradients[name], variables[name]) for name in values])
    moments = [m.numpy() for m in optimizer._momentums]
    np.testing.assert_allclose(moments[0][[0, 3]], 0.1 * scale * values["a"], rtol=1e-5)
    np.testing.assert_allclose(moments[1][[5, 1, 2]], 0.1 * scale * values["b"], rtol=1e-5)


def test_learning_rate_schedule_is_followed():
    schedule = keras.optimizers.schedules.PiecewiseConstantDecay([0], [0.1, 0.0])
    first, second = random_gradients(steps=2)
    once = run(LazyAdam(schedule), [slices([1], first[[1]])])
    twice = run(LazyAdam(schedule), [slices([1], g[[1]]) for g in (first, second)])
    assert (once[0][1] != table()[1]).all()
    np.testing.assert_array_equal(twice[0], once[0])  # from step 1 on the rate is 0
    assert (twice[1][1] != once[1][1]).all()


@pytest.mark.parametrize("kind", [LazyAdam, SparseAdagrad, SparseRMSprop])
def test_no_operation_of_the_graph_is_dense_in_the_table(kind):
    rows = 977  # a number that no other shape has
    variable = tf.Variable(tf.zeros([rows, DIM]))
    optimizer = kind(RATE, global_clipnorm=5.0)
    optimizer.build([variable])

    @tf.function(input_signature=[tf.TensorSpec([None, DIM]), tf.TensorSpec([None], tf.int32)])
    def step(values, indices):
        gradient = tf.IndexedSlices(values, indices, tf.constant([rows, DIM]))
        optimizer.apply_gradients([(gradient, variable)])

    graph = step.get_concrete_function().graph
    operations = list(graph.get_operations())
    for function in graph._functions.values():
        operations += function.graph.get_operations()
    tensors = [output for operation in operations for output in operation.outputs]
    if kind is LazyAdam:
        types = {operation.type for operation in operations}
        assert {"ResourceGather", "ResourceScatterUpdate"} <= types
        assert ("ResourceScatterSub" in types) != ON_KERAS_3  # where it is slow
    assert [tensor.name for tensor in tensors if tensor.shape.rank and rows in tensor.shape] == []


def test_config_round_trip_continues_as_the_original():
    optimizer = LazyAdam(0.03, beta_1=0.8, beta_2=0.99, epsilon=1e-4, global_clipnorm=2.0)
    restored = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(restored) is LazyAdam
    assert restored.get_config() == optimizer.get_config()
    gradients = [slices([1, 4], g[[1, 4]]) for g in random_gradients(steps=2)]
    for found, expected in zip(run(restored, gradients), run(optimizer, gradients)):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("rho", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_rmsprop_is_adam_without_momentum_whichever_rows_are_touched(rho, sparse):
    # Gradients of many magnitudes; with rho 0.5 the accumulators are scaled down seven times.
    rng = np.random.default_rng(5)
    ours = SparseRMSprop(RATE, rho=rho, epsilon=EPSILON)
    keras_adam = keras.optimizers.Adam(RATE, beta_1=0.0, beta_2=rho, epsilon=EPSILON)
    variables = [tf.Variable(table()), tf.Variable(table())]

    @tf.function(input_signature=[tf.TensorSpec([None], tf.int32), tf.TensorSpec([None, DIM])])
    def step(rows, values):
        gradient = tf.IndexedSlices(values, rows, tf.constant([ROWS, DIM]))
        if not sparse:
            gradient = tf.convert_to_tensor(gradient)
        for optimizer, variable in zip((ours, keras_adam), variables):
            optimizer.apply_gradients([(gradient, variable)])

    for optimizer, variable in zip((ours, keras_adam), variables):
        optimizer.build([variable])
    for _ in range(300):
        rows = rng.permutation(ROWS)[: rng.integers(1, ROWS)].astype("i4")
        scale = 10.0 ** rng.integers(-9, 0)
        step(tf.constant(rows), tf.constant(rng.normal(size=(len(rows), DIM)) * scale, tf.float32))
    np.testing.assert_allclose(variables[0], variables[1], atol=1e-5)
    assert np.abs(variables[0] - table()).max() > 0.5


@pytest.mark.parametrize("sparse", [True, False], ids=["sparse", "dense"])
def test_rmsprop_of_scaled_gradients_is_that_of_plain_ones(sparse):
    # With rho 0.5 the scale begins anew every 40 steps.
    steps = random_gradients(steps=90)
    plain, scaled = (
        SparseRMSprop(RATE, rho=0.5),
        SparseRMSprop(RATE, rho=0.5, scaled_gradients=True),
    )
    variables = [tf.Variable(table()), tf.Variable(table())]
    scales = []
    for gradient in steps:
        for optimizer, variable in zip((plain, scaled), variables):
            scale = tf.cast(gradient_policy(optimizer).loss_scale(), tf.float32).numpy()
            given = slices([1, 4], scale * gradient[[1, 4]])
            if not sparse:
                given = tf.convert_to_tensor(given)
            optimizer.apply_gradients([(given, variable)])
        scales.append(scale)
    np.testing.assert_allclose(variables[1], variables[0], rtol=1e-5)
    assert scales[0] == scales[40] == scales[80] == pytest.approx(0.5**-0.5)
    assert max(scales) == pytest.approx(0.5**-20)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_only_rmsprop_made_for_it_wants_its_loss_scaled(name):
    optimizer = make_optimizer(name)
    assert (gradient_policy(optimizer).loss_scale() != 1.0) == (name == "rmsprop")
    assert gradient_policy(OPTIMIZERS[name]()).loss_scale() == 1.0


def test_rmsprop_by_hand():
    # Row 1 in steps 1 and 3: v = 0.01 g1² decays twice before g3² comes in.
    first, _, third = random_gradients(steps=3).astype("f8")
    gradients = [slices([1], first[[1]]), slices([2], first[[2]]), slices([1, 4], third[[1, 4]])]
    variable, accumulator = run_rows(SparseRMSprop(RATE, rho=0.99, epsilon=1e-8), gradients)
    g1, g3 = first[1], third[1]
    expected = table()[1].astype("f8")
    v = 0.01 * g1**2
    expected -= RATE * np.sqrt(1 - 0.99**1) * g1 / (np.sqrt(v) + 1e-8)
    v = 0.99 * (0.99 * v) + 0.01 * g3**2
    expected -= RATE * np.sqrt(1 - 0.99**3) * g3 / (np.sqrt(v) + 1e-8)
    np.testing.assert_allclose(variable[1], expected, rtol=1e-5)
    np.testing.assert_allclose(accumulator[1] * 0.01 * 0.99**3, v, rtol=1e-5)


def test_rmsprop_of_a_single_number_is_adam_without_momentum():
    numbers = []
    for optimizer in (SparseRMSprop(RATE), keras.optimizers.Adam(RATE, beta_1=0.0)):
        variable = keras.Variable(0.5) if ON_KERAS_3 else tf.Variable(0.5)
        for gradient in (0.2, -0.3, 0.1):
            optimizer.apply_gradients([(tf.constant(gradient), variable)])
        numbers.append(float(variable))
    assert numbers[0] == pytest.approx(numbers[1], rel=1e-6)
    assert numbers[0] != 0.5


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


FUSED = (SparseAdagrad, SparseRMSprop)


def run_rows(optimizer, gradients):
    """Applies gradients one after the other; returns the variable and its accumulator."""
    variable = tf.Variable(table())
    optimizer.build([variable])
    for gradient in gradients:
        optimizer.apply_gradients([(gradient, variable)])
    return variable.numpy(), optimizer._accumulators[0].numpy()


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


@pytest.mark.parametrize("rho", [0.0, 1.0, -0.5, 1.5])
def test_rho_outside_its_range_is_an_error(rho):
    with pytest.raises(ValueError, match="inside"):
        SparseRMSprop(rho=rho)


@pytest.mark.parametrize("kind", FUSED)
def test_fused_config_round_trip(kind):
    optimizer = kind(0.03, epsilon=1e-4, unique_rows=True)
    restored = keras.optimizers.deserialize(keras.optimizers.serialize(optimizer))
    assert type(restored) is kind
    assert restored.get_config() == optimizer.get_config()


@pytest.mark.parametrize("norm", [0.5, 4.0])
def test_clipped_scales_sparse_and_dense_gradients_only_above_the_limit(norm):
    dense, sparse = tf.constant([[3.0]]), slices([1], [[0.0, 4.0, 0.0]])
    # The norm is a parameter of its own: the caller has computed it.
    found = clipped([dense, sparse], tf.constant(norm), 2.0)
    factor = min(1.0, 2.0 / norm)
    np.testing.assert_allclose(found[0], [[3.0 * factor]])
    np.testing.assert_allclose(found[1].values, [[0.0, 4.0 * factor, 0.0]])
    np.testing.assert_array_equal(found[1].indices, [1])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_make_optimizer_by_name(name):
    optimizer = make_optimizer(name, 0.25)
    assert type(optimizer) is OPTIMIZERS[name]
    assert optimizer.learning_rate.numpy() == 0.25
    assert make_optimizer(name).learning_rate.numpy() == pytest.approx(LEARNING_RATES[name])
    assert LEARNING_RATES["lazy_adam"] == LEARNING_RATES["adam"] == 0.01  # the paper's


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"adam"}))
def test_unique_rows_spare_the_search_for_rows_named_twice(name):
    variable = tf.Variable(table())

    def operations(optimizer):
        optimizer.build([variable])

        @tf.function(input_signature=[tf.TensorSpec([None, DIM]), tf.TensorSpec([None], tf.int32)])
        def step(values, rows):
            gradient = tf.IndexedSlices(values, rows, tf.constant([ROWS, DIM]))
            optimizer.apply_gradients([(gradient, variable)])

        return {operation.type for operation in step.get_concrete_function().graph.get_operations()}

    assert "Unique" in operations(OPTIMIZERS[name]())
    assert "Unique" not in operations(make_optimizer(name))
