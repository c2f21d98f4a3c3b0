"""Real processes on this machine that train one model together, as a supervisor starts them."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
_DISTRIBUTED = ["--plugin=tf_smoothclir.extras.distributed", "--distribution=multi_worker"]
_MODULE = "tests.extras.distributed.worker_processes"
_ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
_TIMEOUT_SECONDS = 300  # for anything


class WorkerProcesses:
    """Two workers with the same flags, numbered 0 and 1; what still runs is killed at the end."""

    def __init__(self, directory, flags):
        directory.mkdir(parents=True)
        self._logs = [directory / f"worker{index}.log" for index in (0, 1)]
        self._flags = [*flags, *_DISTRIBUTED]
        self._cluster = {"worker": [f"127.0.0.1:{port}" for port in _free_ports(2)]}
        self._processes = [None, None]

    def __enter__(self):
        return self

    def __exit__(self, *error):
        for process in filter(None, self._processes):
            process.kill()
            process.wait()

    def start(self, *workers, more=()):
        for worker in workers:
            config = {"cluster": self._cluster, "task": {"type": "worker", "index": worker}}
            with open(self._logs[worker], "ab") as log:
                self._processes[worker] = subprocess.Popen(
                    [sys.executable, "-m", _MODULE, *self._flags, *more],
                    cwd=ROOT,
                    env={**os.environ, **_ENVIRONMENT, "TF_CONFIG": json.dumps(config)},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )

    def send(self, worker, number):
        self._processes[worker].send_signal(number)

    def kill(self, worker):
        self.send(worker, signal.SIGKILL)
        self.end(worker)

    def end(self, worker):
        return self._processes[worker].wait(timeout=_TIMEOUT_SECONDS)

    def finish(self):
        assert [self.end(0), self.end(1)] == [0, 0], self.log(0) + self.log(1)

    def log(self, worker):
        return self._logs[worker].read_text()

    def wait_for(self, worker, text, times=1):
        """Waits until the log of a worker contains `text` at least `times` times."""
        end = time.monotonic() + _TIMEOUT_SECONDS
        while self.log(worker).count(text) < times:
            if time.monotonic() > end or self._processes[worker].poll() is not None:
                raise AssertionError(f"worker {worker} did not log {text!r}:\n{self.log(worker)}")
            time.sleep(0.05)


def _free_ports(number):
    with contextlib.ExitStack() as stack:
        servers = (socket.create_server(("127.0.0.1", 0)) for _ in range(number))
        sockets = [stack.enter_context(server) for server in servers]
        return [each.getsockname()[1] for each in sockets]


def main():
    """Runs smoothclir-train, and prints a digest of the weights of this worker after training."""
    from tf_smoothclir.extras.distributed.workers import digest_of
    from tf_smoothclir.training.trainer import Trainer
    from trainers.train import run

    original = Trainer.train

    def train(trainer):
        progress = original(trainer)
        variables = trainer.task.variables
        print("Digest:", digest_of("", [*variables.weights, *variables.optimizer]).hex())
        return progress

    Trainer.train = train
    run()


if __name__ == "__main__":
    main()
