"""TF_CONFIG: who takes part, and every mistake in it with its remedy."""

import json

import pytest

from tf_smoothclir.errors import InputError
from tf_smoothclir.training.cluster import Cluster, cluster_of_environment

TWO = {"worker": ["a:1", "b:1"]}


def config(cluster, job, index):
    return json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (config(TWO, "worker", 0), Cluster(("worker 0", "worker 1"), 0)),
        (config(TWO, "worker", 1), Cluster(("worker 0", "worker 1"), 1)),
        (
            config({"worker": ["a:1"], "chief": ["c:1"]}, "worker", 0),
            Cluster(("chief", "worker 0"), 1),
        ),
        (
            config({"chief": ["c:1"], "worker": ["a:1"]}, "chief", 0),
            Cluster(("chief", "worker 0"), 0),
        ),
    ],
)
def test_chief_is_the_one_of_that_name_or_the_first_worker(monkeypatch, text, expected):
    monkeypatch.setenv("TF_CONFIG", text)
    found = cluster_of_environment()
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
    ],
)
def test_mistake_is_told_with_an_example(monkeypatch, text, reason):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(InputError) as error:
        cluster_of_environment()
    assert str(error.value).startswith(f"TF_CONFIG: {reason}")
    assert "Set it for each process, such as" in str(error.value)
