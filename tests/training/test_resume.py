"""A run that is killed repeatedly ends with the same bits as an undisturbed one.

The real command runs in real processes on one run directory: each stop of `STOPS` ends a process,
and the next process gets the same command.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.training import stopped_train
from tf_smoothclir.training.saved_states import BEST, SavedStates

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
STOPS = {
    "mid-epoch": ("step:3", signal.SIGKILL),
    "between best weights and checkpoint": ("best", signal.SIGKILL),
    "terminated in the second epoch": ("step:4", signal.SIGTERM),
    "interrupted in the validation": ("validation", signal.SIGINT),
    "in the evaluation": ("evaluation", signal.SIGKILL),
}


FLAGS = ["--dim=4", "--negatives=3", "--batch_size=8", "--epochs=2", "--learning_rate=0.1"]
FLAGS += ["--fresh_negatives", "--position_weights=learned", "--checkpoint_minutes=0"]


def train(arguments, *stop):
    program = [stopped_train.__file__, *stop] if stop else ["-m", "trainers.train"]
    return subprocess.run(
        [sys.executable, *program, *FLAGS, *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def runs(tiny_dir, tmp_path_factory):
    """The undisturbed run, the stopped run, and the finished process of each stop."""
    work_dir = tmp_path_factory.mktemp("resume")
    whole, stopped = work_dir / "whole", work_dir / "stopped"
    data = [f"--data_dir={tiny_dir}", f"--cache_dir={work_dir / 'cache'}"]
    done = train([*data, f"--output_dir={whole}"])
    assert done.returncode == 0, done.stderr
    arguments, ends = [*data, f"--output_dir={stopped}"], {}
    for name, (place, number) in STOPS.items():
        ends[name] = train(arguments, place, str(int(number)))
        expected = -number if number == signal.SIGKILL else 128 + number
        assert ends[name].returncode == expected, ends[name].stderr
        assert not (stopped / "metrics.json").exists()
    ends["done"] = train(arguments)
    assert ends["done"].returncode == 0, ends["done"].stderr
    return whole, stopped, ends


def tensors(path):
    """All numbers of a checkpoint except the number of checkpoints."""
    reader = tf.train.load_checkpoint(str(path))
    return {
        name: reader.get_tensor(name)
        for name, dtype in reader.get_variable_to_dtype_map().items()
        if dtype != tf.string and "save_counter" not in name
    }


@pytest.mark.parametrize("name", [n for n, (_, s) in STOPS.items() if s != signal.SIGKILL])
def test_polite_signal_says_how_to_continue_without_a_stack_trace(runs, name):
    _, stopped, ends = runs
    assert f"{STOPS[name][1].name}: stopped after epoch " in ends[name].stderr
    assert f"saved in {stopped}. Give the same command again" in ends[name].stderr
    assert "Traceback" not in ends[name].stderr


def test_each_process_went_on_where_the_one_before_was_saved(runs):
    messages = [
        [line for line in end.stderr.splitlines() if line.startswith(("Continuing", "Epoch"))]
        for end in runs[2].values()
    ]
    assert messages[0] == []
    # Killed after its third step, which is saved before the signal.
    assert messages[1] == ["Continuing after epoch 0, step 3"]
    assert messages[2][0] == "Continuing after epoch 0, step 8"
    assert messages[2][1].startswith("Epoch 1/2: loss")


def test_weights_are_the_same_to_the_last_bit(runs):
    """They would not be without the optimizer's state: the first kill comes before two epochs."""

    def path(run):
        states = SavedStates(run / "checkpoints", BEST)
        return states.prefix(states.latest())

    expected, found = (tensors(path(run)) for run in runs[:2])
    assert found.keys() == expected.keys()
    assert len(found) >= 2  # both tables
    for key, value in expected.items():
        np.testing.assert_array_equal(found[key], value, err_msg=key)


def test_metrics_and_history_are_the_same_without_gap_or_repetition(runs):
    expected, found = (json.loads((run / "metrics.json").read_text()) for run in runs[:2])
    for result in (expected, found):
        for measured in ("pairs_per_second", "seconds", "peak_rss_mb"):
            del result["training"][measured]
    assert found == expected
    assert [record["epoch"] for record in found["history"]] == [1, 2]
    assert found["training"]["pairs"] == 2 * 60
    for file in ("test/run.trec", "test/full.run.trec", "validation/run.trec"):
        expected, found = ((run / "evaluation" / file).read_bytes() for run in runs[:2])
        assert found == expected
