"""The number of threads within an operation: chosen by settings, unless the user chooses."""

from __future__ import annotations

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


@pytest.fixture(params=[False, True], ids=["Keras 2", "Keras 3"])
def on_keras_3(request, monkeypatch):
    """Pretends to be on either stack."""
    monkeypatch.setattr(module, "ON_KERAS_3", request.param)
    return request.param


@pytest.fixture
def no_choice(monkeypatch):
    """Nobody has chosen a number; what a test sets is undone."""
    monkeypatch.setenv(NAME, "restored at the end")
    monkeypatch.delenv(NAME)


@pytest.mark.parametrize(
    "changes",
    [{}, {"batching": "lists"}, {"token_weights": "learned"}, {"ngram_buckets": 100}],
    ids=str,
)
def test_sums_of_rows_use_one_thread_on_two_cores_of_todays_stack(on_keras_3, changes):
    settings = changed(RunSettings(), changes)
    found = {cores: intraop_threads(settings, cores) for cores in (1, 2, 3, 8)}
    assert found == {1: 1, 2: 1 if on_keras_3 else 2, 3: 3, 8: 8}


@pytest.mark.usefixtures("on_keras_3")
@pytest.mark.parametrize(
    "settings",
    [
        changed(RunSettings(), {"tower": "cnn"}),
        changed(RunSettings(), {"batching": "in_batch"}),
        changed(RunSettings(), {"hard_negatives": 5}),
    ],
    ids=["cnn", "in-batch", "mined"],
)
def test_products_of_matrices_use_all_cores(settings):
    assert intraop_threads(settings, 2) == 2


@pytest.mark.usefixtures("on_keras_3")
def test_directions_of_an_lstm_take_a_core_each():
    settings = changed(RunSettings(), {"tower": "lstm"})
    assert {cores: intraop_threads(settings, cores) for cores in (1, 2, 8)} == {1: 1, 2: 1, 8: 8}


@pytest.mark.usefixtures("no_choice")
def test_the_variable_is_set_only_if_tensorflow_would_choose_otherwise(on_keras_3, monkeypatch):
    monkeypatch.setattr(module, "_cores", lambda: 2)
    choose_intraop_threads(RunSettings())
    assert os.environ.get(NAME) == ("1" if on_keras_3 else None)


@pytest.mark.parametrize("on_keras_3", [True], indirect=True)
def test_an_explicit_choice_wins(on_keras_3, monkeypatch):
    monkeypatch.setattr(module, "_cores", lambda: 2)
    monkeypatch.setenv(NAME, "2")
    choose_intraop_threads(RunSettings())
    assert os.environ[NAME] == "2"


@pytest.mark.usefixtures("no_choice")
@pytest.mark.parametrize("on_keras_3", [True], indirect=True)
def test_multi_worker_training_sets_nothing(on_keras_3, monkeypatch):
    monkeypatch.setattr(module, "_cores", lambda: 2)
    choose_intraop_threads(changed(RunSettings(), {"distribution": "multi_worker"}))
    assert NAME not in os.environ


@pytest.mark.slow
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs the threads of Linux")
def test_tensorflow_reads_the_variable():
    def threads_with(chosen):
        done = subprocess.run(
            [sys.executable, "-c", COUNT],
            env={**os.environ, NAME: str(chosen)},
            stdout=subprocess.PIPE,
            check=True,
        )
        return int(done.stdout)

    assert threads_with(3) == threads_with(1) + 2
