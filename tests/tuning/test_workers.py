"""Tuner workers: killed and failing ones, and keras-tuner's environment."""

import os
import signal

import pytest
import tensorflow as tf

from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.tuning import tune, workers
from tf_smoothclir.tuning.oracles import GridOracle
from tf_smoothclir.tuning.search_space import search_space
from tf_smoothclir.tuning.tuner import TrialTuner
from tf_smoothclir.tuning.workers import ENVIRONMENT, role, run_local_workers
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.processes import process_group


def oracle_at(path):
    space = search_space(["loss", "thresholds"], RunSettings())  # with conditions
    return GridOracle(space, path, objective="MAP", max_trials=3, seed=1)


class FakeTuner(TrialTuner):
    """Has scores at hand, and is killed in the first trial."""

    def run_trial(self, trial):
        killed = self._output_dir / "killed"
        if not killed.exists():
            killed.write_text(trial.trial_id)
            os.kill(os.getpid(), signal.SIGKILL)
        return {"MAP": 0.5}


def make_tuner(directory):
    return FakeTuner(oracle_at(directory / "state"), None, [], directory)


def work(directory):
    tune._run_trials(make_tuner(directory))


@pytest.mark.slow
def test_a_killed_worker_is_replaced_and_its_trial_run_again(tmp_path, capfd):
    tuner = make_tuner(tmp_path)
    run_local_workers(lambda: tuner_in_chief(tuner), 2, work, tmp_path)
    trials = tuner.oracle.trials
    assert [(t.status, t.score) for t in trials.values()] == [("COMPLETED", 0.5)] * 3
    assert (tmp_path / "killed").read_text() in trials
    assert capfd.readouterr().out == ""  # keras-tuner would print conditions
    assert role() == ""


def tuner_in_chief(tuner):
    assert role() == "chief"
    return tuner


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
    with pytest.raises(InputError, match=message):
        run_local_workers(lambda: make_tuner(tmp_path), 1, function, tmp_path)


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
