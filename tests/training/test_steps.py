"""Many steps in a call of the graph, each operation of which has a kernel for GPUs."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from tests.graphs import nodes_of_functions, operations_in
from tests.training.test_trainer import begin
from tests.two_tower.small_model import make_model
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss
from tf_smoothclir.optimizers import make_optimizer
from tf_smoothclir.protocols.task import Batches
from tf_smoothclir.settings.presets import PRESETS
from tf_smoothclir.settings.training import TrainingSettings
from tf_smoothclir.training.steps import compile_steps
from tf_smoothclir.two_tower.scorer import TwoTowerTask
from tf_smoothclir.utils import devices


def model_of():
    model = make_model()
    model.compile(make_optimizer("rmsprop", 0.1), SmoothOrdinalSearchLoss((0.2, 0.7)))
    model.optimizer.build(model.trainable_variables)
    return model


def batches():
    inputs = {"query": [[[2, 3]], [[4, 0]]], "document": [[[5, 6]], [[7, 8]]]}
    return iter(tf.data.Dataset.from_tensor_slices((inputs, [[2], [0]])).repeat())


def test_a_call_of_many_steps_does_what_as_many_calls_do():
    one, many = model_of(), model_of()
    step, steps = (
        compile_steps(TwoTowerTask(model, TrainingSettings(), Batches())) for model in (one, many)
    )
    taken = batches()
    losses = [step(taken, tf.constant(1))[0].numpy() for _ in range(5)]
    found, norms, pairs, terms = steps(batches(), tf.constant(5))
    np.testing.assert_array_equal(found, np.concatenate(losses))
    first, _, second, _, third = found.numpy()  # of the same relevant pair
    assert first > second > third
    assert norms.shape == (5,)
    assert pairs.numpy().tolist() == terms.numpy().tolist() == [1] * 5
    for a, b in zip(one.get_weights(), many.get_weights()):
        np.testing.assert_array_equal(a, b)


def test_a_step_reads_each_table_once_for_the_model():
    # The optimizer may read the rows once more that it updates, if not in one kernel.
    model = model_of()
    step = tf.function(model.train_step, autograph=False)
    graph = step.get_concrete_function(next(batches())).graph
    for table in map(tf_variable, model.trainable_variables):
        readers = [consumer.type for consumer in graph.capture(table.handle).consumers()]
        assert "ReadVariableOp" not in readers  # but in the function that sums are taken by
        assert readers.count("ResourceGather") <= 1
    in_functions = {node.op for node in nodes_of_functions(graph)}
    assert {"ReadVariableOp", "DisableCopyOnRead"} < in_functions
    assert "ResourceGather" not in in_functions


OPTIONS = [
    {"batching": "lists", "loss": "softmax", "optimizer": "adam"},
    {"tower": "cnn", "optimizer": "lazy_adam"},
    {"tower": "lstm", "batching": "bucketed"},
    {**PRESETS["dense"], "dim": 4, "ngram_buckets": 50, "epochs": 1},
]


def only_on_cpus(graph):
    """The kinds of operations in a graph, and in what it calls, without a kernel for GPUs."""
    found = {
        kind: {one.device_type for one in kernels.get_registered_kernels_for_op(kind).kernel}
        for kind in operations_in(graph)
    }
    return {kind for kind, on in found.items() if not on & {"GPU", "DEFAULT"}}


@pytest.mark.slow
@pytest.mark.skipif(not tf.test.is_built_with_cuda(), reason="it has no kernels for GPUs")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_no_operation_of_a_step_needs_a_cpu(options, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: True)  # the graph is traced for one
    _, trainer = begin(tiny(**options), tmp_path / "run")
    batches = iter(trainer.task.batches.epoch(0).batches(0))
    steps = compile_steps(trainer.task).get_concrete_function(batches, tf.constant(1))
    assert only_on_cpus(steps.graph) == set()


@pytest.mark.slow
@pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="this machine has no GPU")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_training_on_a_gpu_is_that_on_a_cpu(options, tiny, tmp_path):
    losses = {}
    for device in ("/GPU:0", "/CPU:0"):
        with tf.device(device):
            _, trainer = begin(tiny(**options), tmp_path / device[1:4])
            losses[device] = [epoch["loss"] for epoch in trainer.train().history]
    assert losses["/GPU:0"] == pytest.approx(losses["/CPU:0"], rel=1e-2)
