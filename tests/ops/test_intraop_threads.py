"""The number of threads within an operation: chosen by settings, unless the user chooses."""

import os
import subprocess
import sys

import pytest

from tf_smoothclir.extras import distributed as distributed  # registers multi_worker
from tf_smoothclir.ops import intraop_threads as module
from tf_smoothclir.ops.intraop_threads import choose_intraop_threads, intraop_threads
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings

NAME = "TF_NUM_INTRAOP_THREADS"
# Makes TensorFlow start its threads, and counts them. Its allocator starts one more of its own
# sooner or later, which is left out by name once it has one: hence the least of several looks.
COUNT = """
import pathlib, time
import tensorflow as tf

def threads():
    time.sleep(0.1)
    names = [path.read_text() for path in pathlib.Path("/proc/self/task").glob("*/comm")]
    return sum(not name.startswith("jemalloc") for name in names)

tf.zeros(1) + 1
print(min(threads() for _ in range(5)))
"""


@pytest.mark.parametrize(
    ("changes", "on_keras_2", "on_keras_3"),
    [
        ({}, 2, 1),  # sums of rows
        ({"batching": "lists"}, 2, 1),
        ({"token_weights": "learned"}, 2, 1),
        ({"ngram_buckets": 100}, 2, 1),
        ({"tower": "cnn"}, 2, 2),  # products of matrices
        ({"batching": "in_batch"}, 2, 2),
        ({"hard_negatives": 5}, 2, 2),
        ({"tower": "lstm"}, 1, 1),  # directions take a core each
    ],
    ids=str,
)
def test_threads_on_two_cores(changes, on_keras_2, on_keras_3, monkeypatch):
    settings = changed(RunSettings(), changes)
    for stack, on_two in ((False, on_keras_2), (True, on_keras_3)):
        monkeypatch.setattr(module, "ON_KERAS_3", stack)
        found = {cores: intraop_threads(settings, cores) for cores in (1, 2, 3, 8)}
        assert found == {1: 1, 2: on_two, 3: 3, 8: 8}


@pytest.mark.parametrize(
    ("on_keras_3", "changes", "explicit", "expected"),
    [
        (True, {}, None, "1"),
        (False, {}, None, None),  # TensorFlow would choose the same
        (True, {}, "2", "2"),
        (True, {"distribution": "multi_worker"}, None, None),
    ],
)
def test_the_variable_that_is_set(on_keras_3, changes, explicit, expected, monkeypatch):
    monkeypatch.setenv(NAME, explicit or "restored at the end")
    if explicit is None:
        monkeypatch.delenv(NAME)
    monkeypatch.setattr(module, "ON_KERAS_3", on_keras_3)
    monkeypatch.setattr(module, "_cores", lambda: 2)
    choose_intraop_threads(changed(RunSettings(), changes))
    assert os.environ.get(NAME) == expected


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs the threads of Linux")
def test_tensorflow_reads_the_variable():
    def threads_with(chosen):
        command, environment = [sys.executable, "-c", COUNT], {**os.environ, NAME: str(chosen)}
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True)
        return int(done.stdout)

    assert threads_with(3) == threads_with(1) + 2
