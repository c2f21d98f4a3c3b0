"""The chief and its workers: silent, killed and failing ones, and keras-tuner's environment."""

import collections
import os
import signal
import threading
import time
from pathlib import Path

import keras_tuner
import pytest
import tensorflow as tf
from keras_tuner.src.distribute.oracle_client import OracleClient

from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.tuning import chief as module
from tf_smoothclir.tuning import tune
from tf_smoothclir.tuning.chief import Chief, run_local_workers
from tf_smoothclir.tuning.oracles import GridOracle
from tf_smoothclir.tuning.search_space import SearchSpace
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.processes import process_group

pytestmark = pytest.mark.slow

OBJECTIVE = keras_tuner.Objective("MAP", "max")


@pytest.fixture
def oracle(tmp_path):
    space = SearchSpace.of(["thresholds"], RunSettings())
    return GridOracle(space, tmp_path / "state", objective=OBJECTIVE, max_trials=2, seed=1)


def client(monkeypatch, port, tuner_id):
    monkeypatch.setenv("KERASTUNER_ORACLE_IP", "127.0.0.1")
    monkeypatch.setenv("KERASTUNER_ORACLE_PORT", str(port))
    monkeypatch.setenv("KERASTUNER_TUNER_ID", tuner_id)
    return OracleClient(keras_tuner.Oracle(OBJECTIVE))


def end(worker, trial, value):
    worker.update_trial(trial.trial_id, {"MAP": value})
    trial.status = "COMPLETED"
    worker.end_trial(trial)


def test_the_trial_of_a_silent_worker_goes_to_another_and_the_chief_ends(oracle, monkeypatch):
    chief = Chief(oracle, "127.0.0.1:0")
    service = threading.Thread(target=chief.serve, args=(1.0,), daemon=True)
    service.start()
    dead, alive = (client(monkeypatch, chief.port, name) for name in ("dead", "alive"))
    lost, trial = dead.create_trial("dead"), alive.create_trial("alive")
    end(alive, trial, 0.5)
    begin = time.monotonic()
    while (taken := alive.create_trial("alive")).status == "IDLE":
        assert time.monotonic() - begin < 20
        time.sleep(0.1)
    assert taken.trial_id == lost.trial_id
    assert taken.hyperparameters.values == lost.hyperparameters.values
    end(alive, taken, 0.7)
    assert alive.create_trial("alive").status == "STOPPED"
    service.join(20)
    assert not service.is_alive()
    assert [(t.status, t.score) for t in oracle.trials.values()] == [
        ("COMPLETED", 0.7),
        ("COMPLETED", 0.5),
    ]


def test_an_address_of_another_machine_is_an_error(oracle):
    with pytest.raises(InputError, match=r"192\.0\.2\.1:8000: the chief cannot listen"):
        Chief(oracle, "192.0.2.1:8000")


def work_off(killed):
    """Does what a tuner worker does, with scores at hand; the first one is killed at a trial."""
    oracle = OracleClient(keras_tuner.Oracle(OBJECTIVE))
    tuner_id = os.environ["KERASTUNER_TUNER_ID"]
    while (trial := oracle.create_trial(tuner_id)).status != "STOPPED":
        if not Path(killed).exists():
            Path(killed).write_text(trial.trial_id)
            os.kill(os.getpid(), signal.SIGKILL)
        end(oracle, trial, 0.5)


def test_a_killed_local_worker_is_replaced_and_its_trial_run_again(oracle, tmp_path):
    run_local_workers(oracle, 1, work_off, str(tmp_path / "killed"))
    assert (tmp_path / "killed").read_text() == "0000"
    assert [(t.status, t.score) for t in oracle.trials.values()] == [("COMPLETED", 0.5)] * 2


def test_a_trial_that_kills_every_worker_ends_the_search(oracle):
    deaths = collections.Counter()
    for _ in range(2):
        oracle.create_trial("worker0")
        module._count_death(oracle, "worker0", -9, deaths)
    assert oracle.create_trial("worker0").trial_id == "0000"
    with pytest.raises(InputError, match="3 tuner workers were killed at trial 0000, last worker0"):
        module._count_death(oracle, "worker0", -9, deaths)


def test_a_worker_that_fails_ends_the_search(oracle):
    with pytest.raises(InputError, match="worker0 failed with exit code 1"):
        module._count_death(oracle, "worker0", 1, collections.Counter())


@pytest.mark.parametrize(
    ("environment", "role"),
    [
        ({}, ""),
        ({"IP": "127.0.0.1", "PORT": "8000", "ID": "chief"}, "chief"),
        ({"IP": "127.0.0.1", "PORT": "8000", "ID": "tuner0"}, "worker"),
    ],
)
def test_the_environment_of_keras_tuner_gives_the_role(monkeypatch, environment, role):
    _set(monkeypatch, environment)
    assert tune._role() == role


def test_an_incomplete_environment_is_an_error(monkeypatch):
    _set(monkeypatch, {"IP": "127.0.0.1", "ID": "chief"})
    with pytest.raises(InputError, match="it is set without KERASTUNER_ORACLE_PORT"):
        tune._role()


def _set(monkeypatch, environment):
    names = {"IP": "ORACLE_IP", "PORT": "ORACLE_PORT", "ID": "TUNER_ID"}
    for short, name in names.items():
        monkeypatch.delenv(f"KERASTUNER_{name}", raising=False)
        if short in environment:
            monkeypatch.setenv(f"KERASTUNER_{name}", environment[short])


def test_a_worker_loads_tensorflow_silently(capfd, monkeypatch):
    # TensorFlow 2.21 writes to standard error before it reads this.
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    with process_group() as running:
        module._start(running, "worker0", 0, tensorflow_version, ())
        assert running.wait() == [("worker0", 0)]
    output, errors = capfd.readouterr()
    assert (output.strip(), errors) == (tf.__version__, "")


def tensorflow_version():
    print(tf.__version__, flush=True)
