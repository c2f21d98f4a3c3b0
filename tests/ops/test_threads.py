"""How many threads operations are computed with."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tf_smoothclir._compat import threads as short_operations
from tf_smoothclir.ops import threads
from tf_smoothclir.ops.threads import choose_threads, operation_threads
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings

NAME = "TF_NUM_INTRAOP_THREADS"
# Makes TensorFlow start its threads.
COUNT = "import os, tensorflow as tf; tf.zeros(1) + 1; print(len(os.listdir('/proc/self/task')))"


@pytest.fixture(params=[False, True], ids=["Keras 2", "Keras 3"])
def on_keras_3(request, monkeypatch):
    """Either stack, as far as the choice goes."""
    monkeypatch.setattr(short_operations, "ON_KERAS_3", request.param)
    return request.param


@pytest.fixture
def no_choice(monkeypatch):
    """Nobody has chosen, and whatever a test chooses is forgotten."""
    monkeypatch.setenv(NAME, "what is deleted now comes back at the end")
    monkeypatch.delenv(NAME)


@pytest.mark.parametrize(
    "changes",
    [{}, {"batching": "lists"}, {"token_weights": "learned"}, {"ngram_buckets": 100}],
    ids=str,
)
def test_sums_of_rows_have_one_thread_each_on_two_cores_of_todays_stack(on_keras_3, changes):
    settings = changed(RunSettings(), changes)
    found = {cores: operation_threads(settings, cores) for cores in (1, 2, 3, 8)}
    assert found == {1: 1, 2: 1 if on_keras_3 else 2, 3: 3, 8: 8}


@pytest.mark.usefixtures("on_keras_3")
@pytest.mark.parametrize(
    "settings",
    [
        changed(RunSettings(), {"tower": "cnn"}),
        changed(RunSettings(), {"tower": "lstm"}),
        changed(RunSettings(), {"batching": "in_batch"}),
        changed(RunSettings(), {"hard_negatives": 5}),
    ],
    ids=["cnn", "lstm", "in-batch", "mined"],
)
def test_products_of_matrices_have_all_cores(settings):
    assert operation_threads(settings, 2) == 2


@pytest.mark.usefixtures("no_choice")
def test_tensorflow_is_told_where_it_would_do_otherwise(on_keras_3, monkeypatch):
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    choose_threads(RunSettings())
    assert os.environ.get(NAME) == ("1" if on_keras_3 else None)


@pytest.mark.parametrize("on_keras_3", [True], indirect=True)
def test_the_choice_of_the_user_stays(on_keras_3, monkeypatch):
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    monkeypatch.setenv(NAME, "2")
    choose_threads(RunSettings())
    assert os.environ[NAME] == "2"


@pytest.mark.usefixtures("no_choice")
@pytest.mark.parametrize("on_keras_3", [True], indirect=True)
def test_several_workers_choose_nothing(on_keras_3, monkeypatch):
    monkeypatch.setattr(threads, "_cores", lambda: 2)
    choose_threads(changed(RunSettings(), {"distribution": "multi_worker", "shards_dir": "shards"}))
    assert NAME not in os.environ


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs the threads of Linux")
def test_tensorflow_reads_the_choice():
    def threads_with(chosen):
        done = subprocess.run(
            [sys.executable, "-c", COUNT],
            env={**os.environ, NAME: str(chosen)},
            stdout=subprocess.PIPE,
            check=True,
        )
        return int(done.stdout)

    assert threads_with(3) == threads_with(1) + 2
