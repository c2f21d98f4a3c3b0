"""Many steps in a call of the graph, whose operations all run on GPUs; watching them."""

import math
import os
import signal
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from tests.cases import cases
from tests.graphs import nodes_of_functions, operations_in
from tests.training.test_trainer import begin
from tests.two_tower.small_model import make_model
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss
from tf_smoothclir.optimizers import make_optimizer
from tf_smoothclir.protocols.task import Batches
from tf_smoothclir.settings import presets, training
from tf_smoothclir.training import steps as steps_module
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.steps import Diverged, StepMonitor, StopRequest, compile_steps
from tf_smoothclir.two_tower.scorer import TwoTowerTask
from tf_smoothclir.utils import devices

OPTIONS = [
    {"batching": "lists", "loss": "softmax", "optimizer": "adam"},
    {"tower": "cnn", "optimizer": "lazy_adam"},
    {"tower": "lstm", "batching": "bucketed"},
    {**presets.PRESETS["dense"], "dim": 4, "ngram_buckets": 50, "epochs": 1},
]
SIZES = (4, 4, 2, 4)  # pairs of the steps


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
    tasks = (TwoTowerTask(model, training.TrainingSettings(), Batches()) for model in (one, many))
    step, steps = map(compile_steps, tasks)
    taken = batches()
    losses = [step(taken, tf.constant(1))[0].numpy() for _ in range(5)]
    found, norms, pairs, terms = steps(batches(), tf.constant(5))
    np.testing.assert_array_equal(found, np.concatenate(losses))
    first, _, second, _, third = found.numpy()  # of the same relevant pair
    assert first > second > third
    assert norms.shape == (5,)
    assert pairs.numpy().tolist() == terms.numpy().tolist() == [1] * 5
    np.testing.assert_equal(one.get_weights(), many.get_weights())


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


def only_on_cpus(graph):
    """The kinds of operations in a graph, and in what it calls, without a kernel for GPUs."""
    found = {
        kind: {one.device_type for one in kernels.get_registered_kernels_for_op(kind).kernel}
        for kind in operations_in(graph)
    }
    return {kind for kind, on in found.items() if not on & {"GPU", "DEFAULT"}}


@pytest.mark.slow
@pytest.mark.skipif(not tf.test.is_built_with_cuda(), reason="it has no kernels for GPUs")
@cases("options", *OPTIONS, ids=str)
def test_no_operation_of_a_step_needs_a_cpu(options, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: True)  # the graph is traced for one
    _, trainer = begin(tiny(**options), tmp_path / "run")
    batches = iter(trainer.task.batches.epoch(0).batches(0))
    steps = compile_steps(trainer.task).get_concrete_function(batches, tf.constant(1))
    assert only_on_cpus(steps.graph) == set()


@pytest.mark.slow
@pytest.mark.skipif(not tf.config.list_physical_devices("GPU"), reason="this machine has no GPU")
@cases("options", *OPTIONS, ids=str)
def test_training_on_a_gpu_is_that_on_a_cpu(options, tiny, tmp_path):
    losses = {}
    for device in ("/GPU:0", "/CPU:0"):
        with tf.device(device):
            _, trainer = begin(tiny(**options), tmp_path / device[1:4])
            losses[device] = [epoch["loss"] for epoch in trainer.train().history]
    assert losses["/GPU:0"] == pytest.approx(losses["/CPU:0"], rel=1e-2)


def watch(progress, *, save=lambda: None, seconds=1e9):
    watched = {"losses": ("loss", "other_loss"), "checked": ("gradient_norm",), "bar": mock.Mock()}
    return StepMonitor(progress, **watched, save=save, seconds_between_saves=seconds)


def step(watching, loss=1.0, other=1.0, norm=1.0):
    steps(watching, [loss], [other], [norm], [SIZES[watching.progress.step]], [4])


def steps(watching, losses, others, norms, pairs, terms=(1, 1, 1)):
    names = ("loss", "other_loss", "gradient_norm", "pairs", "terms")
    watching.after_steps(dict(zip(names, (losses, others, norms, pairs, terms))))


def test_saves_when_its_time_has_come_which_counts_the_time_of_steps_alone(monkeypatch):
    clock, saved, progress = SimpleNamespace(now=100.0), [], Progress(seconds=5.0)
    monkeypatch.setattr(steps_module.time, "monotonic", lambda: clock.now)

    def save():
        saved.append(progress.step)
        clock.now += 1000

    watching = watch(progress, save=save, seconds=3)
    for _ in SIZES:  # at 2, 4 (saved), 6, 8 (saved)
        clock.now += 2
        step(watching)
    assert saved == [2, 4]
    assert progress.seconds == 5 + 4 * 2


@cases(
    "logs, what",
    ({"loss": float("nan")}, "loss"),
    ({"other": float("-inf")}, "other loss"),
    ({"norm": float("inf")}, "gradient norm"),
)
def test_what_is_not_finite_stops_at_once_and_is_neither_counted_nor_saved(logs, what):
    save, progress = mock.Mock(), Progress()
    watching = watch(progress, save=save, seconds=0)
    step(watching)
    with pytest.raises(Diverged, match=f"{what} is not finite in step 1"):
        step(watching, **logs)
    assert (progress.step, progress.loss_sums["loss"]) == (1, 4.0)
    ones = [1, 1, 1]
    with pytest.raises(Diverged, match="gradient norm is not finite in step 2"):  # the first one
        steps(watching, ones, ones, [1, math.nan, math.inf], ones)
    assert save.call_count == 1


@cases("number", signal.SIGINT, signal.SIGTERM)
def test_a_signal_is_noted_a_second_ends_at_once_and_the_old_handler_comes_back(number):
    stop = StopRequest()
    # A job in the background ignores SIGINT, and so would its tests.
    before = signal.signal(number, signal.default_int_handler)
    try:
        with stop.listening():
            assert stop.signal is None
            os.kill(os.getpid(), number)
            assert stop.signal == number
            with pytest.raises(KeyboardInterrupt):
                os.kill(os.getpid(), number)
        assert signal.getsignal(number) is signal.default_int_handler
    finally:
        signal.signal(number, before)
