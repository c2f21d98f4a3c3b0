"""Tuner workers that fail, and keras-tuner's environment; `test_resume` kills some."""

import os
import signal

import pytest
import tensorflow as tf

from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.tuning import workers
from tf_smoothclir.tuning.oracles import GridOracle
from tf_smoothclir.tuning.search_space import search_space
from tf_smoothclir.tuning.tuner import TrialTuner
from tf_smoothclir.tuning.workers import ENVIRONMENT, role, run_local_workers
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.processes import process_group


def die(directory):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(directory):
    raise InputError("no data")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "message"),
    [(die, "worker0 was killed 3 times"), (fail, "worker0 failed with exit code 1")],
)
def test_a_worker_that_cannot_work_ends_the_search(tmp_path, function, message):
    space = search_space(["thresholds"], RunSettings())
    oracle = GridOracle(space, tmp_path / "state", objective="MAP", max_trials=3, seed=1)

    def make_tuner():
        assert role() == "chief"
        return TrialTuner(oracle, None, [], tmp_path)

    with pytest.raises(InputError, match=message):
        run_local_workers(make_tuner, 1, function, tmp_path)
    assert role() == ""


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((), ""),
        (("chief", "127.0.0.1", "8000"), "chief"),
        (("tuner0", "127.0.0.1", "8000"), "worker"),
        (("chief", "127.0.0.1"), None),
    ],
)
def test_the_environment_of_keras_tuner_gives_the_role(monkeypatch, values, expected):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    for name, value in zip(ENVIRONMENT, values):
        monkeypatch.setenv(name, value)
    if expected is None:
        with pytest.raises(InputError, match="KERASTUNER_ORACLE_PORT is missing"):
            role()
    else:
        assert role() == expected


@pytest.mark.slow
def test_a_worker_loads_tensorflow_silently(capfd, monkeypatch):
    # TensorFlow 2.21 writes to standard error before it reads this.
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    with process_group() as running:
        running.start("worker0", workers._work, "worker0", [], tensorflow_version, ())
        assert running.wait() == [("worker0", 0)]
    output, errors = capfd.readouterr()
    assert (output.strip(), errors) == (tf.__version__, "")


def tensorflow_version():
    print(tf.__version__, flush=True)
