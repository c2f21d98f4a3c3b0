"""Tuner workers that fail, and keras-tuner's environment; `test_resume` kills some."""

import os
import signal

import pytest

from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.tuning.oracles import GridOracle
from tf_smoothclir.tuning.search_space import search_space
from tf_smoothclir.tuning.tune import ENVIRONMENT, role, run_local_workers
from tf_smoothclir.tuning.tuner import TrialTuner
from tf_smoothclir.utils.errors import InputError


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


def test_the_environment_of_keras_tuner_gives_the_role(monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert role() == ""
    for name, value in zip(ENVIRONMENT, ("chief", "127.0.0.1", "8000")):
        monkeypatch.setenv(name, value)
    assert role() == "chief"
    monkeypatch.setenv(ENVIRONMENT[0], "tuner0")
    assert role() == "worker"
    monkeypatch.delenv(ENVIRONMENT[2])
    with pytest.raises(InputError, match="KERASTUNER_ORACLE_PORT is missing"):
        role()
