"""The cluster of a training run: which processes TF_CONFIG names, and waiting for all of them."""

from __future__ import annotations

import dataclasses
import os
import socket
import time
from collections.abc import Callable

import tensorflow as tf

from tf_smoothclir.utils.errors import input_error

_JOBS = ("chief", "worker")
_SECONDS_BETWEEN_TRIES = 0.2
_CONNECTION_TIMEOUT_SECONDS = 2.0
_EXAMPLE = (
    '{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},'
    ' "task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that train one model, and which of them this one is."""

    names: tuple[str, ...]  # such as "worker 0"; the first is the chief
    addresses: tuple[tuple[str, int], ...]  # host and port of each
    number: int  # of this process


def cluster_from_environment() -> Cluster:
    """Reads the cluster from TF_CONFIG: workers, and optionally a chief."""
    text, remedy = (
        os.environ.get("TF_CONFIG", ""),
        f"Set it for each process, for example {_EXAMPLE}",
    )
    if not text:
        reason = "it is not set, but --distribution=multi_worker needs it"
        raise input_error("TF_CONFIG", reason, remedy)
    try:
        resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        jobs, task = resolver.cluster_spec().as_dict(), (resolver.task_type, resolver.task_id)
        tasks = [(job, number) for job in _JOBS for number in range(len(jobs.get(job, [])))]
        others = sorted(set(jobs) - set(_JOBS))
        if others or len(jobs.get("chief", [])) > 1:
            raise ValueError(f"only workers and one chief are supported, not {', '.join(jobs)}")
        if task not in tasks:
            raise ValueError(f"the task is {task[0]} {task[1]}, which is not in the cluster")
        addresses = tuple(_address(jobs[job][number]) for job, number in tasks)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise input_error("TF_CONFIG", f"it cannot be read ({error})", remedy) from None
    names = tuple("chief" if job == "chief" else f"{job} {number}" for job, number in tasks)
    return Cluster(names, addresses, tasks.index(task))


def _address(text: str) -> tuple[str, int]:
    host, _, port = str(text).rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"{text!r} is not host:port")
    return host, int(port)


def wait_for_all(cluster: Cluster, is_finished: Callable[[], bool]) -> bool:
    """Waits until every process of a cluster, this one included, listens at its address.

    TensorFlow would wait too, but it would not react to signals or to `is_finished`.
    """
    with _listener(*cluster.addresses[cluster.number]):
        while not all(map(_listens, cluster.addresses)):
            if is_finished():
                return False
            time.sleep(_SECONDS_BETWEEN_TRIES)
    return True


def _listener(host: str, port: int) -> socket.socket:
    both = socket.has_dualstack_ipv6()
    family = socket.AF_INET6 if both else socket.AF_INET
    try:
        return socket.create_server(("", port), family=family, dualstack_ipv6=both)
    except OSError as error:
        raise input_error(
            "TF_CONFIG",
            f"this process cannot listen at its address {host}:{port} ({error.strerror})",
            "Choose another port, or stop the process that uses it",
        ) from error


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=_CONNECTION_TIMEOUT_SECONDS).close()
    except OSError:
        return False
    return True
