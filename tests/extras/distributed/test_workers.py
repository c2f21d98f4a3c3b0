"""Several workers: their models stay equal to the last bit, whichever worker is lost."""

import json
import re
import shutil
import signal
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.extras.distributed.test_shard_training import tiny_shards
from tests.extras.distributed.worker_processes import WorkerProcesses, run_flags
from tests.training.test_resume import tensors
from tf_smoothclir.extras.distributed.workers import is_of_cluster
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.training.saved_states import BEST, SavedStates

EPOCHS = 14
TERM = signal.SIGTERM


@pytest.fixture(scope="module")
def shards(tiny, tmp_path_factory):
    """Shards of the tiny set; read-only."""
    return tiny_shards(tiny, tmp_path_factory.mktemp("shards") / "four", TextSettings())


@pytest.fixture(scope="module")
def workers_at(tiny, shards):
    """`workers_at(path)` are two workers whose run is `path / "run"`."""
    data = tiny().data
    of_data = [f"--data_dir={data.data_dir}", f"--cache_dir={data.cache_dir}"]
    more = [f"--epochs={EPOCHS}", "--learning_rate=0.1", "--checkpoint_minutes=0"]

    def start(path):
        flags = run_flags(of_data, shards.directory, path / "run")
        return WorkerProcesses(path / "logs", [*flags, *more])

    return start


@pytest.fixture(scope="module")
def whole(workers_at, tmp_path_factory):
    """The run directory and the logs of two undisturbed workers."""
    path = tmp_path_factory.mktemp("whole")
    with workers_at(path) as workers:
        workers.start(0, 1)
        workers.finish()
        return path / "run", workers.log(0), workers.log(1)


def last(run):
    states = SavedStates(run / "checkpoints", BEST)
    return tensors(states.prefix(states.latest()))


def metrics_of(run):
    result = json.loads((run / "metrics.json").read_text())
    for measured in ("pairs_per_second", "seconds", "peak_rss_mb"):
        del result["training"][measured]
    return result


def digest(log):
    return re.findall("Digest: (.*)", log)[-1]


HERE = "{{function_node __wrapped__SaveV2_device_/job:worker/replica:0/task:0/device:CPU:0}} "


@pytest.mark.parametrize(
    ("name", "message", "expected"),
    [
        ("Unavailable", HERE + "Connection reset by peer", True),
        ("Internal", "Collective ops is aborted by: an error elsewhere", True),
        ("Internal", "/job:worker/replica:0/task:1 has no heartbeat", True),
        # Errors of this process name its own place.
        ("Internal", HERE + "write failed", False),
        ("ResourceExhausted", HERE + "checkpoints/best; No space left", False),
        ("ResourceExhausted", "OOM on /job:worker/replica:0/task:0/device:CPU:0", False),
    ],
)
def test_only_connection_errors_mean_that_another_worker_is_lost(name, message, expected):
    error = getattr(tf.errors, f"{name}Error")(None, None, message)
    assert is_of_cluster(error, ["worker 1", "worker 2"]) is expected


def test_workers_are_equal_to_the_last_bit_and_only_the_chief_logs_progress(whole):
    _, chief, other = whole
    assert digest(chief) == digest(other)
    assert f"Epoch {EPOCHS}/{EPOCHS}: loss" in chief
    assert "| NDCG@5 | " in chief
    assert re.sub("Digest: .*", "", other).splitlines() == [
        "This is worker 1 of 2; waiting for the others",
        "All 2 workers are there",
        "",
    ]


def test_killed_workers_join_again_and_nothing_is_lost(workers_at, whole, tmp_path):
    """SIGKILL to the chief and to the other worker, SIGTERM to one: the run ends undisturbed."""
    run = tmp_path / "run"
    with workers_at(tmp_path) as workers:
        workers.start(0, 1)
        workers.wait_for(0, f"Epoch 2/{EPOCHS}")
        workers.kill(0)
        workers.wait_for(1, "worker 0 was lost; waiting for it to come back and continue from")
        workers.start(0)
        workers.wait_for(0, "Continuing after epoch")
        workers.wait_for(0, "Epoch ", times=2 + 3)
        workers.kill(1)
        workers.start(1)  # before or after the other has noticed
        workers.wait_for(0, "worker 1 was lost; waiting for it")
        workers.wait_for(0, "Continuing after epoch", times=2)
        workers.wait_for(0, "Epoch ", times=2 + 3 + 3)
        workers.send(1, TERM)
        assert [workers.end(0), workers.end(1)] == [128 + TERM] * 2
        for log in (workers.log(0), workers.log(1)):
            assert "SIGTERM: stopped after epoch" in log
            assert "Traceback" not in log
        assert not (run / "metrics.json").exists()
        workers.start(0, 1)
        workers.finish()
        assert digest(workers.log(0)) == digest(workers.log(1)) == digest(whole[1])
    assert metrics_of(run) == metrics_of(whole[0])
    expected, found = last(whole[0]), last(run)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)


def test_worker_that_starts_after_the_others_have_finished_exits(workers_at, whole, tmp_path):
    shutil.copytree(whole[0], tmp_path / "run")
    metrics = tmp_path / "run" / "metrics.json"
    content = metrics.read_bytes()
    metrics.unlink()
    with workers_at(tmp_path) as workers:
        workers.start(1)
        workers.wait_for(1, "waiting for the others")
        metrics.write_bytes(content)
        assert workers.end(1) == 0
        assert "The others have finished the run without this worker" in workers.log(1)
        assert f"The run in {tmp_path / 'run'} is finished" in workers.log(1)


def test_waiting_worker_ends_with_a_signal(workers_at, tmp_path):
    with workers_at(tmp_path) as workers:
        workers.start(1)
        workers.wait_for(1, "waiting for the others")
        time.sleep(1)
        workers.send(1, TERM)
        assert workers.end(1) == -TERM
    assert not (tmp_path / "run").exists()


def test_an_input_error_in_one_worker_ends_all(workers_at, tmp_path):
    with workers_at(tmp_path) as workers:
        workers.start(0)
        workers.start(1, more=["--epochs=7"])
        assert [workers.end(0), workers.end(1)] == [1, 1]
        assert "error: worker 1: this worker cannot begin. Its own message" in workers.log(0)
        assert f"the chief has other settings (--epochs: {EPOCHS} there, 7 here)" in workers.log(1)
