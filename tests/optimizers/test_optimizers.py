"""What all optimizers share: names, gradient policies, and no operation dense in the table."""

from __future__ import annotations

import pytest
import tensorflow as tf
from tensorflow import keras

from tests.optimizers.small_table import DIM, RATE, ROWS, table
from tf_smoothclir._compat import ON_KERAS_3
from tf_smoothclir.optimizers import (
    LEARNING_RATE,
    OPTIMIZERS,
    LazyAdam,
    SparseRMSprop,
    make_optimizer,
)
from tf_smoothclir.optimizers.sparse_optimizer import GradientPolicy, gradient_policy


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_make_optimizer_by_name(name):
    optimizer = make_optimizer(name, 0.25)
    assert type(optimizer) is OPTIMIZERS[name]
    assert optimizer.learning_rate.numpy() == 0.25
    assert make_optimizer(name).learning_rate.numpy() == pytest.approx(LEARNING_RATE)


def test_policies_of_the_optimizers_as_they_are_made_for_training():
    policies = {name: gradient_policy(make_optimizer(name)) for name in OPTIMIZERS}
    assert {name for name, policy in policies.items() if policy.names_all_rows} == {"lazy_adam"}
    assert {name for name, policy in policies.items() if not policy.unique_rows} == {"adam"}


def test_an_optimizer_of_keras_asks_nothing_of_gradients():
    assert gradient_policy(keras.optimizers.SGD()) == GradientPolicy()


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_only_rmsprop_made_for_training_scales_the_loss(name):
    optimizer = make_optimizer(name)
    assert (gradient_policy(optimizer).loss_scale() != 1.0) == (name == "rmsprop")
    assert gradient_policy(OPTIMIZERS[name]()).loss_scale() == 1.0


@pytest.mark.parametrize("kind", [LazyAdam, SparseRMSprop])
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


@pytest.mark.parametrize("name", sorted(set(OPTIMIZERS) - {"adam"}))
def test_unique_rows_save_the_search_for_rows_named_twice(name):
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
