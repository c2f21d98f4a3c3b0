"""Who trains together: what TF_CONFIG says, as TensorFlow's own strategies read it."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import time
from collections.abc import Callable

from tf_smoothclir.errors import InputError, input_error

_JOBS = ("chief", "worker")
_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_FOR_A_LOOK = 2.0
_EXAMPLE = (
    'Set it for each process, such as {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},'
    ' "task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that train one model, and which one this is.

    Attributes:
        names: Of all of them, such as "worker 0"; the first one is the chief.
        addresses: Of all of them: host and port.
        number: The place of this one among them.
    """

    names: tuple[str, ...]
    addresses: tuple[tuple[str, int], ...]
    number: int

    @property
    def is_chief(self) -> bool:
        """Whether this process writes the run directory."""
        return self.number == 0


def cluster_of_environment() -> Cluster:
    """Returns what TF_CONFIG says.

    Raises:
        InputError: It is missing or wrong.
    """
    text = os.environ.get("TF_CONFIG", "")
    if not text:
        raise _wrong("it is not set, and --distribution=multi_worker reads who trains there")
    try:
        config = json.loads(text)
        jobs = {name: list(addresses) for name, addresses in config["cluster"].items()}
        task, index = config["task"]["type"], int(config["task"]["index"])
    except ValueError as error:
        raise _wrong(f"this is no JSON of a cluster ({error})") from None
    except (KeyError, TypeError, AttributeError):
        raise _wrong("it has not the parts cluster, and task with type and index") from None
    others = sorted(set(jobs) - set(_JOBS))
    if others:
        raise _wrong(f"there are {', '.join(others)} in the cluster, not only a chief and workers")
    if task not in jobs or not 0 <= index < len(jobs[task]):
        raise _wrong(f"the task is {task} {index}, which the cluster does not have")
    if len(jobs.get("chief", [])) > 1:
        raise _wrong("there are several chiefs")
    tasks = [(job, number) for job in _JOBS for number in range(len(jobs.get(job, [])))]
    names = tuple("chief" if job == "chief" else f"worker {number}" for job, number in tasks)
    addresses = tuple(_address(jobs[job][number]) for job, number in tasks)
    return Cluster(names, addresses, tasks.index((task, index)))


def wait_for_all(cluster: Cluster, is_finished: Callable[[], bool]) -> bool:
    """Waits until each process of a cluster listens at its address, this one included.

    TensorFlow would wait too, but without an ear for signals or anything else.

    Args:
        cluster: The processes.
        is_finished: Whether there is nothing left to wait for.

    Returns:
        Whether all are there; False where `is_finished` says so before.

    Raises:
        InputError: This process cannot listen at its address.
    """
    host, port = cluster.addresses[cluster.number]
    try:
        listener = socket.create_server(
            ("", port),
            family=socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET,
            dualstack_ipv6=socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise input_error(
            "TF_CONFIG",
            f"this worker cannot listen at its address {host}:{port} ({error.strerror})",
            "Choose another port, or end the process that has it",
        ) from error
    with listener:
        while not all(map(_listens, cluster.addresses)):
            if is_finished():
                return False
            time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address, timeout=_SECONDS_FOR_A_LOOK).close()
    except OSError:
        return False
    return True


def _address(text: str) -> tuple[str, int]:
    host, _, port = str(text).rpartition(":")
    if not host or not port.isdecimal():
        raise _wrong(f"{text!r} is no host and port")
    return host, int(port)


def _wrong(reason: str) -> InputError:
    return input_error("TF_CONFIG", reason, _EXAMPLE)
