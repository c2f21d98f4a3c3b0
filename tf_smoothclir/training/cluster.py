"""Who trains together: what TF_CONFIG says, as TensorFlow's own strategies read it."""

from __future__ import annotations

import dataclasses
import json
import os

from tf_smoothclir.errors import InputError, input_error

_JOBS = ("chief", "worker")
_EXAMPLE = (
    'Set it for each process, such as {"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]},'
    ' "task": {"type": "worker", "index": 0}}'
)


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The processes that train one model, and which one this is.

    Attributes:
        names: Of all of them, such as "worker 0"; the first one is the chief.
        number: The place of this one among them.
    """

    names: tuple[str, ...]
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
    return Cluster(names, tasks.index((task, index)))


def _wrong(reason: str) -> InputError:
    return input_error("TF_CONFIG", reason, _EXAMPLE)
