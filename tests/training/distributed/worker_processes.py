"""Real processes on this machine that train one model together, as a supervisor starts them."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tf_smoothclir._compat.quiet import hush_tensorflow

ROOT = Path(__file__).resolve().parents[3]
_SECONDS = 300  # that anything may take
TWO_WORKERS = {"worker": 2}


class WorkerProcesses:
    """Some processes with the same flags; a context manager that leaves none behind.

    They are numbered from 0, by the order of their jobs: two workers are 0 and 1.
    """

    def __init__(
        self,
        directory: Path,
        flags: Sequence[str],
        jobs: Mapping[str, int] = TWO_WORKERS,
        module: str = "tests.training.distributed.worker_train",
    ):
        """Gives so many processes of each job addresses; their logs go to `directory`, a new one.

        They run `module`, with parameter servers where there is a job ps.
        """
        self._module = module
        directory.mkdir(parents=True)
        self._tasks = [(job, index) for job, number in jobs.items() for index in range(number)]
        self._logs = [directory / f"{job}{index}.log" for job, index in self._tasks]
        distribution = "parameter_server" if "ps" in jobs else "multi_worker"
        self._flags = [*flags, f"--distribution={distribution}"]
        self._cluster = {job: [] for job in jobs}
        for (job, _), port in zip(self._tasks, _free_ports(len(self._tasks))):
            self._cluster[job].append(f"127.0.0.1:{port}")
        self._processes: list[subprocess.Popen | None] = [None] * len(self._tasks)

    def __enter__(self) -> WorkerProcesses:
        return self

    def __exit__(self, *error) -> None:
        for process in filter(None, self._processes):
            process.kill()
            process.wait()

    def start(self, *workers: int, more: Sequence[str] = ()) -> None:
        """Starts workers, or starts them again, with `more` flags."""
        for worker in workers:
            job, index = self._tasks[worker]
            config = {"cluster": self._cluster, "task": {"type": job, "index": index}}
            with open(self._logs[worker], "ab") as log:
                self._processes[worker] = subprocess.Popen(
                    [sys.executable, "-m", self._module, *self._flags, *more],
                    cwd=ROOT,
                    env={
                        **os.environ,
                        "PYTHONPATH": str(ROOT),
                        "PYTHONUNBUFFERED": "1",
                        "TF_CONFIG": json.dumps(config),
                    },
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def send(self, worker: int, number: int) -> None:
        """Sends a worker a signal."""
        self._processes[worker].send_signal(number)

    def end(self, worker: int) -> int:
        """Waits for a worker to end, and returns its exit code."""
        return self._processes[worker].wait(timeout=_SECONDS)

    def is_running(self, worker: int) -> bool:
        """Returns whether a worker has not ended."""
        return self._processes[worker].poll() is None

    def log(self, worker: int) -> str:
        """Returns what a worker, started any number of times, has said so far."""
        return self._logs[worker].read_text()

    def wait_for(self, worker: int, text: str, times: int = 1) -> None:
        """Waits until a worker has said something so many times."""
        end = time.monotonic() + _SECONDS
        while self.log(worker).count(text) < times:
            if time.monotonic() > end or not self.is_running(worker):
                raise AssertionError(f"worker {worker} does not say {text!r}:\n{self.log(worker)}")
            time.sleep(0.05)


def run_flags(data: Sequence[str], shards: str | Path, output_dir: str | Path) -> list[str]:
    """Returns the flags of a small run on the shards of a tiny set, which `data` names."""
    return [
        *data,
        f"--shards_dir={shards}",
        f"--output_dir={output_dir}",
        "--batching=lists",
        "--dim=4",
        "--negatives=3",
        "--batch_size=20",
    ]


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    try:
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


def load_quietly() -> None:
    """Has TensorFlow load silently in such a process: the command has not set up its log yet."""
    logging.getLogger("tensorflow").setLevel(logging.WARNING)
    hush_tensorflow()
