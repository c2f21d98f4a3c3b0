"""TF_CONFIG: who takes part, and every mistake in it with its remedy."""

import json
import socket

import pytest

from tf_smoothclir.training.distributed.cluster import Cluster, cluster_of_environment, wait_for_all
from tf_smoothclir.utils.errors import InputError

TWO = {"worker": ["a:1", "b:1"]}
SERVED = {"ps": ["p:1", "q:1"], **TWO, "chief": ["c:1"]}


def config(cluster, job, index):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (config(TWO, "worker", 0), Cluster(("worker 0", "worker 1"), (("a", 1), ("b", 1)), 0)),
        (config(TWO, "worker", 1), Cluster(("worker 0", "worker 1"), (("a", 1), ("b", 1)), 1)),
        (
            config({"worker": ["a:1"], "chief": ["c:1"]}, "worker", 0),
            Cluster(("chief", "worker 0"), (("c", 1), ("a", 1)), 1),
        ),
        (
            config({"chief": ["c:1"], "worker": ["a:1"]}, "chief", 0),
            Cluster(("chief", "worker 0"), (("c", 1), ("a", 1)), 0),
        ),
    ],
)
def test_chief_is_the_one_of_that_name_or_the_first_worker(monkeypatch, text, expected):
    monkeypatch.setenv("TF_CONFIG", text)
    found = cluster_of_environment("multi_worker")
    assert found == expected
    assert found.is_chief == (expected.number == 0)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not set, and --distribution=multi_worker"),
        ("{", "this is no JSON"),
        ("[]", "it has not the parts"),
        ('{"cluster": {"worker": ["a:1"]}}', "it has not the parts"),
        ('{"cluster": ["a:1"], "task": {"type": "worker", "index": 0}}', "it has not the parts"),
        (config(TWO, "worker", 2), "the task is worker 2, which the cluster does not have"),
        (config(TWO, "worker", -1), "the task is worker -1"),
        (config(TWO, "chief", 0), "the task is chief 0, which the cluster does not have"),
        (config({**TWO, "ps": ["p:1"]}, "worker", 0), "there are ps in the cluster"),
        (config({"chief": ["a:1", "b:1"]}, "chief", 0), "there are several chiefs"),
        (config({"worker": ["a"]}, "worker", 0), "'a' is no host and port"),
        (config({"worker": ["a:b"]}, "worker", 0), "'a:b' is no host and port"),
    ],
)
def test_mistake_is_told_with_an_example(monkeypatch, text, reason):
    message = mistake(monkeypatch, text, "multi_worker")
    assert message.startswith(f"TF_CONFIG: {reason}")
    assert 'Set it for each process, such as {"cluster": {"worker": [' in message


def mistake(monkeypatch, text, distribution):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError) as error:
        cluster_of_environment(distribution)
    return str(error.value)


def test_cluster_of_parameter_servers_has_its_chief_first(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", config(SERVED, "ps", 1))
    found = cluster_of_environment("parameter_server")
    assert found.names == ("chief", "worker 0", "worker 1", "ps 0", "ps 1")
    assert found.addresses == (("c", 1), ("a", 1), ("b", 1), ("p", 1), ("q", 1))
    assert (found.number, found.is_chief) == (4, False)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it is not set, and --distribution=parameter_server"),
        (config(TWO, "worker", 0), "the cluster has not all of a chief, workers and parameter"),
        (config({**SERVED, "ps": []}, "chief", 0), "the cluster has not all of a chief, workers"),
        (config({**SERVED, "evaluator": ["e:1"]}, "ps", 0), "there are evaluator in the cluster"),
        (config(SERVED, "ps", 2), "the task is ps 2, which the cluster does not have"),
        (config(SERVED, "evaluator", 0), "the task is evaluator 0, which the cluster does not"),
    ],
)
def test_mistake_about_parameter_servers_too(monkeypatch, text, reason):
    message = mistake(monkeypatch, text, "parameter_server")
    assert message.startswith(f"TF_CONFIG: {reason}")
    assert '"ps": ["10.0.0.3:2222"' in message


def test_address_of_another_process_is_a_mistake(monkeypatch):
    with socket.create_server(("", 0)) as other:
        address = f"127.0.0.1:{other.getsockname()[1]}"
        monkeypatch.setenv("TF_CONFIG", config({"worker": [address]}, "worker", 0))
        with pytest.raises(InputError, match=f"cannot listen at its address {address} .*port"):
            wait_for_all(cluster_of_environment("multi_worker"), lambda: False)
