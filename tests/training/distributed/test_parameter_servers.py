"""Parameter servers: real processes, tables in two places, and the loss of any of them."""

import json
import re
import signal
import socket

import numpy as np
import pytest
import tensorflow as tf

from tests.training.distributed.worker_processes import WorkerProcesses, run_flags
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.training.distributed.parameter_servers import ParameterServers
from tf_smoothclir.training.distributed.workers import WorkerLost
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_report import evaluate_model
from tf_smoothclir.training.train import load_model, tokenized_set_of, train

EPOCHS = 6
JOBS = {"chief": 1, "worker": 2, "ps": 2}
CHIEF, WORKERS, SERVERS = 0, (1, 2), (3, 4)
ALL = (CHIEF, *WORKERS, *SERVERS)
CHANGES = {
    "batching": "lists",
    "optimizer": "adagrad",
    "batch_size": 20,
    "epochs": EPOCHS,
    "learning_rate": 0.5,
}


@pytest.fixture(scope="module")
def flags(tiny, shards):
    """`flags(output_dir)` are those of a run on the shards."""
    data = tiny().data
    of_data = [f"--data_dir={data.data_dir}", f"--cache_dir={data.cache_dir}"]
    more = [f"--{name}={value}" for name, value in CHANGES.items()]
    return lambda output_dir: [*run_flags(of_data, shards.directory, output_dir), *more]


@pytest.fixture(scope="module")
def processes(flags, tmp_path_factory):
    """`processes(output_dir)` are a chief, two workers and two servers."""
    return lambda output_dir: WorkerProcesses(
        output_dir.parent / "logs",
        flags(output_dir),
        JOBS,
        "tests.training.distributed.served_train",
    )


@pytest.fixture(scope="module")
def whole(processes, tmp_path_factory):
    """The run directory of processes that nobody disturbed, and what all of them said."""
    run = tmp_path_factory.mktemp("whole") / "run"
    with processes(run) as running:
        running.start(*ALL)
        assert ends(running) == [0] * len(ALL), running.log(CHIEF)
        return run, [running.log(number) for number in ALL]


@pytest.fixture(scope="module")
def alone(tiny, shards, tmp_path_factory):
    """The figures of one process with the same flags."""
    settings = tiny(shards_dir=shards.directory, **CHANGES)
    return train(settings, tmp_path_factory.mktemp("alone") / "run")


def ends(running):
    return [running.end(number) for number in ALL]


def figures(run):
    return json.loads((run / "metrics.json").read_text())


def losses(result):
    return [record["loss"] for record in result["history"]]


def assert_trained_as_alone(run, alone):
    found, expected = losses(figures(run)), losses(alone)
    assert len(found) == EPOCHS
    # Another begin, and steps of other sizes and in another order.
    np.testing.assert_allclose(found[:2], expected[:2], rtol=0.3)
    assert np.mean(found[-3:]) == pytest.approx(np.mean(expected[-3:]), rel=0.3)
    assert np.mean(found[-3:]) < found[0] / 2
    assert figures(run)["training"]["pairs"] == EPOCHS * 60


def test_half_of_the_rows_of_each_table_are_on_each_server(whole, shards):
    _, (chief, *_) = whole
    found = re.findall(r"Rows of (\w+): (\d+) on (\S+)", chief)
    expected = []
    for role in ROLES:
        size = len(shards.vocabulary(role))
        for server, rows in enumerate([size - size // 2, size // 2]):
            device = f"/job:ps/replica:0/task:{server}/device:CPU:0"
            expected.append((f"{role}_tower", str(rows), device))
    assert found == expected


def test_loss_and_metric_are_those_of_one_process(whole, alone):
    run, _ = whole
    assert_trained_as_alone(run, alone)
    best = [max(r["validation"]["NDCG@5"] for r in f["history"]) for f in (figures(run), alone)]
    assert best[0] == pytest.approx(best[1], abs=0.2)


def test_run_is_evaluated_in_one_process_as_any_other(whole):
    run = RunDirectory.load(whole[0])
    settings = run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    found = evaluate_model(load_model(run), tokenized_set, 3, ["test"], run.path.parent / "trec")
    assert found["test"].metrics == pytest.approx(figures(run.path)["test"], abs=1e-6)


def test_only_the_chief_speaks(whole):
    _, (chief, *servers) = whole
    assert f"Epoch {EPOCHS}/{EPOCHS}: loss" in chief
    assert "test NDCG@5" in chief
    assert "retracing" not in chief
    for name, said in zip(("worker 0", "worker 1", "ps 0", "ps 1"), servers):
        assert said.splitlines() == [
            f"This is {name}; waiting for the chief",
            "The chief is there",
        ]


def test_training_goes_on_without_a_worker_and_after_the_loss_of_server_and_chief(
    processes, alone, tmp_path
):
    run = tmp_path / "run"
    with processes(run) as running:
        running.start(*ALL)
        running.wait_for(CHIEF, f"Epoch 1/{EPOCHS}")
        running.send(WORKERS[1], signal.SIGKILL)
        running.end(WORKERS[1])
        running.wait_for(CHIEF, f"Epoch 3/{EPOCHS}")
        assert "worker 1 was lost; the others go on" in running.log(CHIEF)
        assert "last checkpoint" not in running.log(CHIEF)
        running.start(WORKERS[1])
        running.send(SERVERS[0], signal.SIGKILL)
        running.end(SERVERS[0])
        running.wait_for(CHIEF, "ps 0 was lost; waiting for it, to go on from the last checkpoint")
        running.start(SERVERS[0])
        running.wait_for(CHIEF, "Continuing after epoch")
        running.wait_for(CHIEF, "Epoch ", times=3 + 1)
        running.send(CHIEF, signal.SIGTERM)
        assert running.end(CHIEF) == 128 + signal.SIGTERM
        assert "SIGTERM: stopped after epoch" in running.log(CHIEF)
        running.start(CHIEF)
        running.wait_for(CHIEF, "Continuing after epoch", times=2)
        assert ends(running) == [0] * len(ALL), running.log(CHIEF)
        assert "Traceback" not in running.log(CHIEF)
        assert "GRPC" not in running.log(CHIEF)
        for number in (*WORKERS, *SERVERS):
            assert "The chief has ended before the run is finished" in running.log(number)
    assert_trained_as_alone(run, alone)


@pytest.mark.parametrize(
    ("message", "name"),
    [
        ("/job:ps/replica:0/task:0 is gone", "ps 0"),
        ("Socket closed", "ps 1"),  # the one that does not listen
    ],
)
def test_lost_server_is_named(message, name):
    with socket.create_server(("127.0.0.1", 0)) as alive, socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        servers = object.__new__(ParameterServers)  # without processes
        servers._servers = {"ps 0": alive.getsockname(), "ps 1": unheard.getsockname()}
        with pytest.raises(WorkerLost, match=f"^{name} was lost"), servers.noticing_losses():
            raise tf.errors.UnavailableError(None, None, message)
