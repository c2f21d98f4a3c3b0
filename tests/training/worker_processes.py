"""Real processes on this machine that train one model together, as a supervisor starts them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_SECONDS = 300  # that anything may take


class WorkerProcesses:
    """Some workers with the same flags; a context manager that leaves none behind."""

    def __init__(self, directory: Path, flags: Sequence[str], number: int = 2):
        """Gives them addresses; their logs go to `directory`, which it makes."""
        directory.mkdir(parents=True)
        self._logs = [directory / f"worker{index}.log" for index in range(number)]
        self._flags = [*flags, "--distribution=multi_worker"]
        self._addresses = [f"127.0.0.1:{port}" for port in _free_ports(number)]
        self._processes: list[subprocess.Popen | None] = [None] * number

    def __enter__(self) -> WorkerProcesses:
        return self

    def __exit__(self, *error) -> None:
        for process in filter(None, self._processes):
            process.kill()
            process.wait()

    def start(self, *workers: int, more: Sequence[str] = ()) -> None:
        """Starts workers, or starts them again, with `more` flags."""
        for index in workers:
            config = {
                "cluster": {"worker": self._addresses},
                "task": {"type": "worker", "index": index},
            }
            with open(self._logs[index], "ab") as log:
                self._processes[index] = subprocess.Popen(
                    [sys.executable, "-m", "tests.training.worker_train", *self._flags, *more],
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
