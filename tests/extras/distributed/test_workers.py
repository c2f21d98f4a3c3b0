"""Training from shards: as from the set; several workers stay equal to the last bit."""

import json
import re
import shutil
import signal
import socket
import time

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.extras.distributed.worker_processes import WorkerProcesses
from tests.training import test_checkpoints, test_resume, test_trainer
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources import opening, source
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.extras import distributed as distributed  # registers the distributions
from tf_smoothclir.extras.distributed import cluster as module
from tf_smoothclir.extras.distributed.cluster import Cluster, cluster_from_environment
from tf_smoothclir.extras.distributed.pipeline import on_shards as on_shards_of
from tf_smoothclir.extras.distributed.workers import is_of_cluster
from tf_smoothclir.extras.distributed.writer import write_shards
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.training.run_data import retrieval_set_of, tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet
from tf_smoothclir.training.train import train, trainer_of
from tf_smoothclir.utils.errors import InputError

TEXT = TextSettings(vocabulary_size=30)
EPOCHS = 14
TERM = signal.SIGTERM
HERE = "{{function_node __wrapped__SaveV2_device_/job:worker/replica:0/task:0/device:CPU:0}} "
TWO = {"worker": ["a:1", "b:1"]}


def tiny_shards(tiny, directory, text, seed=13):
    settings = tiny()
    retrieval_set = retrieval_set_of(opening.source_of(settings.data), settings, source.SPLITS)
    tokenized_set = tokenize_set(retrieval_set, text, settings.data.cache_dir)
    sampling = {"negatives": 3, "seed": seed}
    lists = candidate_lists(retrieval_set, split="train", **sampling)
    return write_shards(tokenized_set, lists, directory, 4, **sampling, text=text)


@pytest.fixture(scope="module")
def shards(tiny, tmp_path_factory):
    return tiny_shards(tiny, tmp_path_factory.mktemp("shards") / "four", TEXT)


@pytest.fixture
def on_shards(tiny, shards):
    """`on_shards(**changes)` gives the settings of a run on the shards."""
    own = {"distribution": "shards", "shards_dir": shards.directory, "batching": "lists"}
    return lambda **changes: tiny(**{**own, "vocabulary_size": 30, **changes})


def start(settings, path):
    run = RunDirectory.create(path, settings)
    tokenized_set = tokenized_set_of(opening.source_of(settings.data), settings, run, source.SPLITS)
    return trainer_of(ModelsOverSet(settings, tokenized_set), run, on_shards_of(settings, None))


def trained(settings, path):
    trainer = start(settings, path)
    return trainer.train(), test_trainer.weights(trainer.task.model)


def test_run_has_the_vocabularies_of_the_shards_and_metrics(on_shards, shards, tiny, tmp_path):
    result = train(on_shards(epochs=5, negatives=5, train_negatives=3), tmp_path / "run")
    run = RunDirectory.load(tmp_path / "run")
    assert [*map(run.vocabulary_tokens, ROLES)] == [*map(shards.vocabulary, ROLES)]
    losses = [record["loss"] for record in result["history"]]
    assert losses[-1] < losses[0] / 1.5
    assert result["training"]["pairs"] == 5 * 60
    assert result["test"]["NDCG@5"] > 0.5
    assert np.sum(result["confusion"]["test"]) == 4 * (2 + 5)  # not the 3 negatives of training
    on_the_set = tiny(epochs=5, batching="lists", vocabulary_size=30)
    expected = train(on_the_set, tmp_path / "set")["history"][-1]["loss"]
    assert losses[-1] == pytest.approx(expected, rel=0.2)


def test_killed_run_continues_bit_for_bit(on_shards, tmp_path):
    expected = trained(on_shards(), tmp_path / "whole")
    assert expected[0].pairs == 2 * 60
    for number in (4, 5):
        test_trainer.train_until_killed(start(on_shards(), tmp_path / "run"), number)
    test_trainer.assert_same(trained(on_shards(), tmp_path / "run"), expected)


def test_moved_shards_continue_a_run_and_other_ones_do_not(on_shards, shards, tiny, tmp_path):
    train(on_shards(epochs=1), tmp_path / "run")
    (tmp_path / "run" / "metrics.json").unlink()
    tiny_shards(tiny, tmp_path / "other", TEXT, seed=14)
    with pytest.raises(InputError, match=r"begun on other content .*distributed \(1 on shards"):
        train(on_shards(epochs=1, shards_dir=str(tmp_path / "other")), tmp_path / "run")
    shutil.copytree(shards.directory, tmp_path / "copy")
    train(on_shards(epochs=1, shards_dir=str(tmp_path / "copy")), tmp_path / "run")


def test_broken_record_is_named(on_shards, shards, tmp_path):
    shutil.copytree(shards.directory, tmp_path / "copy")
    path = tmp_path / "copy" / shards.manifest.shards[2].file
    test_checkpoints.flip(path)
    with pytest.raises(InputError, match=rf"{path.name}, record [1-9]: .*corrupted record"):
        train(on_shards(shards_dir=str(tmp_path / "copy")), tmp_path / "run")


@cases(
    "changes, message",
    ({"vocabulary_size": 20}, "30 for --vocabulary_size, but it is 20 here. Give --voc.*=30"),
    ({"negatives": 5}, "3 for --train_negatives, but it is 5 here. Give --train_negatives=3"),
    ({"thresholds": (0.1,)}, "they have 3 grades, but --thresholds are for 2. Give 2"),
    ({"data_dir": ""}, "made from the set .*, but the data flags name toy-en-fr"),
)
def test_what_does_not_fit_the_shards_is_refused_at_once(on_shards, tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        train(on_shards(**changes), tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.fixture(scope="module")
def workers_at(tiny, tmp_path_factory):
    """`workers_at(path)` are two workers whose run is `path / "run"`."""
    shards = tiny_shards(tiny, tmp_path_factory.mktemp("shards") / "four", TextSettings())
    data = tiny().data
    flags = [f"--data_dir={data.data_dir}", f"--cache_dir={data.cache_dir}", f"--epochs={EPOCHS}"]
    flags += [f"--shards_dir={shards.directory}", "--batching=lists", "--checkpoint_minutes=0"]
    flags += ["--dim=4", "--batch_size=20", "--negatives=3", "--learning_rate=0.1"]
    return lambda path: WorkerProcesses(path / "logs", [*flags, f"--output_dir={path / 'run'}"])


@pytest.fixture(scope="module")
def whole(workers_at, tmp_path_factory):
    """The run directory and the logs of two undisturbed workers."""
    path = tmp_path_factory.mktemp("whole")
    with workers_at(path) as workers:
        workers.start(0, 1)
        workers.finish()
        return path / "run", workers.log(0), workers.log(1)


def digest(log):
    return re.findall("Digest: (.*)", log)[-1]


@cases(
    "name, message, expected",
    ("Unavailable", HERE + "Connection reset by peer", True),
    ("Internal", "Collective ops is aborted by: an error elsewhere", True),
    ("Internal", "/job:worker/replica:0/task:1 has no heartbeat", True),
    ("ResourceExhausted", HERE + "write failed", False),  # names the place of this process
)
def test_only_connection_errors_mean_that_another_worker_is_lost(name, message, expected):
    error = getattr(tf.errors, f"{name}Error")(None, None, message)
    assert is_of_cluster(error, ["worker 1", "worker 2"]) is expected


def test_workers_are_equal_to_the_last_bit_and_only_the_chief_logs_progress(whole):
    _, chief, other = whole
    assert digest(chief) == digest(other)
    assert f"Epoch {EPOCHS}/{EPOCHS}: loss" in chief
    assert "Epoch" not in other


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
    np.testing.assert_equal(test_resume.results(run), test_resume.results(whole[0]))


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


def config(cluster, job, index):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


def test_chief_is_the_one_of_that_name_or_the_first_worker(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config(TWO, "worker", 1))
    assert cluster_from_environment() == Cluster(("worker 0", "worker 1"), (("a", 1), ("b", 1)), 1)
    for place, job in enumerate(("chief", "worker")):
        monkeypatch.setenv("TF_CONFIG", config({"worker": ["a:1"], "chief": ["c:1"]}, job, 0))
        chief_first = ("chief", "worker 0"), (("c", 1), ("a", 1))
        assert cluster_from_environment() == Cluster(*chief_first, place)


@cases(
    "text, reason",
    ("", "it is not set, but --distribution=multi_worker needs it"),
    ("{", "it cannot be read .Expecting property name"),
    ("[]", "it cannot be read .the task is None"),
    (config(TWO, "worker", 2), ".*the task is worker 2, which is not in the cluster"),
    (config({**TWO, "ps": ["p:1"]}, "worker", 0), ".*one chief are supported, not worker, ps"),
    (config({"chief": ["a:1", "b:1"]}, "chief", 0), ".*only workers and one chief"),
    (config({"worker": ["a"]}, "worker", 0), ".*'a' is not host:port"),
)
def test_mistake_in_tf_config_is_reported_with_an_example(monkeypatch, text, reason):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError, match=f"^TF_CONFIG: {reason}.*Set it for each process, for ex"):
        cluster_from_environment()


def test_address_of_another_process_is_a_mistake(monkeypatch):
    with socket.create_server(("", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("TF_CONFIG", config({"worker": [address]}, "worker", 0))
        with pytest.raises(InputError, match=f"cannot listen at its address {address} .*port"):
            module.wait_for_all(cluster_from_environment(), lambda: False)
