"""Training runs on a GPU as it is: each operation of a step has a kernel there."""

import pytest
import tensorflow as tf
from tensorflow.python.framework import kernels

from tests.graphs import operations_in
from tests.training.test_trainer import begin
from tf_smoothclir.settings.presets import PRESETS
from tf_smoothclir.training.steps import compile_steps
from tf_smoothclir.utils import devices

pytestmark = pytest.mark.slow

BEST = {**PRESETS["dense"], "dim": 4, "ngram_buckets": 50, "mine_ranks": (1, 5), "epochs": 1}
OPTIONS = [
    {},
    {"batching": "lists", "loss": "softmax"},
    {"optimizer": "adam"},
    {"optimizer": "lazy_adam"},
    {"tower": "cnn"},
    {"tower": "lstm", "batching": "bucketed"},
    BEST,
]


def only_on_cpus(graph):
    """The kinds of operations in a graph, and in what it calls, without a kernel for GPUs."""
    found = {
        kind: {one.device_type for one in kernels.get_registered_kernels_for_op(kind).kernel}
        for kind in operations_in(graph)
    }
    return {kind for kind, on in found.items() if not on & {"GPU", "DEFAULT"}}


needs_gpu_kernels = pytest.mark.skipif(
    not tf.test.is_built_with_cuda(), reason="this TensorFlow has no kernels for GPUs"
)
GPUS = tf.config.list_physical_devices("GPU")


@needs_gpu_kernels
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_no_operation_of_a_step_needs_a_cpu(options, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(devices, "has_gpu", lambda: True)  # the graph is traced for one
    _, trainer = begin(tiny(**options), tmp_path / "run")
    batches = iter(trainer.task.batches.epoch(0).batches(0))
    steps = compile_steps(trainer.task).get_concrete_function(batches, tf.constant(1))
    assert only_on_cpus(steps.graph) == set()


@pytest.mark.skipif(not GPUS, reason="this machine has no GPU")
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_training_on_a_gpu_is_that_on_a_cpu(options, tiny, tmp_path):
    losses = {}
    for device in ("/GPU:0", "/CPU:0"):
        with tf.device(device):
            _, trainer = begin(tiny(**options), tmp_path / device[1:4])
            losses[device] = [epoch["loss"] for epoch in trainer.train().history]
    assert losses["/GPU:0"] == pytest.approx(losses["/CPU:0"], rel=1e-2)


@needs_gpu_kernels
def test_an_operation_of_texts_is_found_to_need_a_cpu():
    lower = tf.function(lambda texts: tf.strings.lower(texts, encoding="utf-8"))
    graph = lower.get_concrete_function(tf.TensorSpec([None], tf.string)).graph
    assert only_on_cpus(graph) == {"StringLower"}
