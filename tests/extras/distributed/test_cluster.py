"""TF_CONFIG: the cluster that it describes, and an error with a remedy for every mistake."""

import json
import socket

import pytest

from tf_smoothclir.extras.distributed import cluster as module
from tf_smoothclir.extras.distributed.cluster import Cluster, cluster_from_environment
from tf_smoothclir.utils.errors import InputError

TWO = {"worker": ["a:1", "b:1"]}


def config(cluster, job, index):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


WITH_CHIEF = {"worker": ["a:1"], "chief": ["c:1"]}
WORKERS = ("worker 0", "worker 1"), (("a", 1), ("b", 1))
CHIEF_FIRST = ("chief", "worker 0"), (("c", 1), ("a", 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (config(TWO, "worker", 0), Cluster(*WORKERS, 0)),
        (config(TWO, "worker", 1), Cluster(*WORKERS, 1)),
        (config(WITH_CHIEF, "worker", 0), Cluster(*CHIEF_FIRST, 1)),
        (config(WITH_CHIEF, "chief", 0), Cluster(*CHIEF_FIRST, 0)),
    ],
)
def test_chief_is_the_one_of_that_name_or_the_first_worker(monkeypatch, text, expected):
    monkeypatch.setenv("TF_CONFIG", text)
    assert cluster_from_environment() == expected


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not set, but --distribution=multi_worker needs it"),
        ("{", "it is not valid JSON"),
        ("[]", "it lacks cluster, or task"),
        ('{"cluster": ["a:1"], "task": {"type": "worker", "index": 0}}', "it lacks cluster, or"),
        (config(TWO, "worker", 2), "the task is worker 2, which is not in the cluster"),
        (config(TWO, "worker", -1), "the task is worker -1"),
        (config({**TWO, "ps": ["p:1"]}, "worker", 0), "the cluster has ps, but only chief and wor"),
        (config({"chief": ["a:1", "b:1"]}, "chief", 0), "the cluster has more than one chief"),
        (config({"worker": ["a"]}, "worker", 0), "'a' is not host:port"),
        (config({"worker": ["a:b"]}, "worker", 0), "'a:b' is not host:port"),
    ],
)
def test_mistake_in_tf_config_is_reported_with_an_example(monkeypatch, text, reason):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError) as error:
        cluster_from_environment()
    message = str(error.value)
    assert message.startswith(f"TF_CONFIG: {reason}")
    assert 'Set it for each process, for example {"cluster": {"worker": [' in message


def test_address_of_another_process_is_a_mistake(monkeypatch):
    with socket.create_server(("", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("TF_CONFIG", config({"worker": [address]}, "worker", 0))
        with pytest.raises(InputError, match=f"cannot listen at its address {address} .*port"):
            module.wait_for_all(cluster_from_environment(), lambda: False)
