"""Who trains together: what TF_CONFIG says, as TensorFlow's own strategies read it."""

from __future__ import annotations

import dataclasses
import json
import os
import socket
import time
from collections.abc import Callable, Sequence

from tf_smoothclir.utils.errors import input_error

_JOBS = {"multi_worker": ("chief", "worker"), "parameter_server": ("chief", "worker", "ps")}
_SECONDS_BETWEEN_LOOKS = 0.2
_SECONDS_FOR_A_LOOK = 2.0
_EXAMPLES = {
    "multi_worker": '{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},'
    ' "task": {"type": "worker", "index": 0}}',
    "parameter_server": '{"cluster": {"chief": ["10.0.0.1:2222"], "worker": ["10.0.0.2:2222"],'
    ' "ps": ["10.0.0.3:2222", "10.0.0.4:2222"]}, "task": {"type": "ps", "index": 0}}',
}


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


def cluster_of_environment(distribution: str) -> Cluster:
    """Returns what TF_CONFIG says.

    Args:
        distribution: "multi_worker", whose cluster has workers and perhaps a chief among them, or
            "parameter_server", whose cluster has a chief, workers and parameter servers.

    Raises:
        InputError: It is missing or wrong.
    """
    try:
        return _cluster(os.environ.get("TF_CONFIG", ""), distribution)
    except ValueError as error:
        example = f"Set it for each process, such as {_EXAMPLES[distribution]}"
        raise input_error("TF_CONFIG", str(error), example) from None


def _cluster(text: str, distribution: str) -> Cluster:
    """Returns what the text of TF_CONFIG says; a ValueError says what is wrong with it."""
    if not text:
        raise ValueError(f"it is not set, and --distribution={distribution} reads who trains there")
    try:
        config = json.loads(text)
        jobs = {name: list(addresses) for name, addresses in config["cluster"].items()}
        task, index = config["task"]["type"], int(config["task"]["index"])
    except ValueError as error:
        raise ValueError(f"this is no JSON of a cluster ({error})") from None
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it has not the parts cluster, and task with type and index") from None
    known = _JOBS[distribution]
    others = sorted(set(jobs) - set(known))
    if others:
        raise ValueError(f"there are {', '.join(others)} in the cluster, not only {_listed(known)}")
    if distribution == "parameter_server" and not all(map(jobs.get, known)):
        raise ValueError(f"the cluster has not all of {_listed(known)}")
    if task not in jobs or not 0 <= index < len(jobs[task]):
        raise ValueError(f"the task is {task} {index}, which the cluster does not have")
    if len(jobs.get("chief", [])) > 1:
        raise ValueError("there are several chiefs")
    tasks = [(job, number) for job in known for number in range(len(jobs.get(job, [])))]
    names = tuple("chief" if job == "chief" else f"{job} {number}" for job, number in tasks)
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
    with _listener(cluster):
        return wait_for(cluster.addresses, is_finished)


def wait_for(addresses: Sequence[tuple[str, int]], is_finished: Callable[[], bool]) -> bool:
    """Waits until a process listens at each of the addresses; else like `wait_for_all`."""
    while not all(map(listens, addresses)):
        if is_finished():
            return False
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    return True


def check_address(cluster: Cluster) -> None:
    """Checks that this process can listen at its address.

    Raises:
        InputError: It cannot.
    """
    _listener(cluster).close()


def _listener(cluster: Cluster) -> socket.socket:
    host, port = cluster.addresses[cluster.number]
    try:
        return socket.create_server(
            ("", port),
            family=socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET,
            dualstack_ipv6=socket.has_dualstack_ipv6(),
        )
    except OSError as error:
        raise input_error(
            "TF_CONFIG",
            f"this process cannot listen at its address {host}:{port} ({error.strerror})",
            "Choose another port, or end the process that has it",
        ) from error


def listens(address: tuple[str, int]) -> bool:
    """Returns whether a process listens at an address, a host and a port."""
    try:
        socket.create_connection(address, timeout=_SECONDS_FOR_A_LOOK).close()
    except OSError:
        return False
    return True


def _address(text: str) -> tuple[str, int]:
    host, _, port = str(text).rpartition(":")
    if not host or not port.isdecimal():
        raise ValueError(f"{text!r} is no host and port")
    return host, int(port)


def _listed(jobs: Sequence[str]) -> str:
    names = ["a chief", "workers", "parameter servers (ps)"][: len(jobs)]
    return f"{', '.join(names[:-1])} and {names[-1]}"
