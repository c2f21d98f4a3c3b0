"""Kills workers again and again while they train.

To be run as `python -m tests.extras.distributed.kill_rounds ROUNDS`.
Each round kills one of two workers, chosen at random, at a random moment (while it starts,
connects, trains, validates or saves), restarts it, and waits until training continues. Then the run
finishes, and its metrics must equal those of an undisturbed run.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.extras.distributed.worker_processes import WorkerProcesses, run_flags
from tests.training.tiny_set import write_tiny_set

_MAX_SECONDS = 12.0  # since the last kill; a worker takes about half of it to join again
_EPOCHS = 600  # more than twenty rounds need


def main(rounds: int) -> None:
    """Runs `rounds` rounds."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        flags = _flags(directory)
        with WorkerProcesses(directory / "whole-logs", flags(directory / "whole")) as workers:
            workers.start(0, 1)
            assert [workers.end(0), workers.end(1)] == [0, 0]
        with WorkerProcesses(directory / "logs", flags(directory / "run")) as workers:
            workers.start(0, 1)
            workers.wait_for(0, "Epoch ")
            for number in range(rounds):
                _kill_one(workers, number, random.choice((0, 1)))
            ends = [workers.end(0), workers.end(1)]
            logs = workers.log(0) + workers.log(1)
            assert ends == [0, 0], logs
        assert "Traceback" not in logs, logs
        assert _metrics(directory / "run") == _metrics(directory / "whole")
    print(f"{rounds} rounds, the same metrics in the end")


def _kill_one(workers: WorkerProcesses, number: int, victim: int) -> None:
    begin, before = time.monotonic(), workers.log(0).count("Epoch ")
    time.sleep(random.uniform(0, _MAX_SECONDS))
    if not workers.is_running(victim):
        raise AssertionError(f"worker {victim} has ended:\n{workers.log(victim)}")
    workers.send(victim, signal.SIGKILL)
    workers.end(victim)
    time.sleep(random.choice((0, 0, 1, 3)))
    workers.start(victim)
    done = workers.log(0).count("Epoch ")
    workers.wait_for(0, "Epoch ", times=done + 1)
    seconds = time.monotonic() - begin
    print(f"round {number + 1}: worker {victim}, {done - before} epochs before,", end=" ")
    print(f"continues after {seconds:.1f} s", flush=True)


def _flags(directory: Path):
    data = [f"--data_dir={write_tiny_set(directory / 'data')}", f"--cache_dir={directory}/cache"]
    shards = str(directory / "shards")
    arguments = [*data, "--negatives=3", "--num_shards=4", f"--output_dir={shards}"]
    module = "tf_smoothclir.extras.distributed.write_shards"
    subprocess.run([sys.executable, "-m", module, *arguments], check=True)
    more = [f"--epochs={_EPOCHS}", "--checkpoint_minutes=0.005"]
    return lambda output_dir: [*run_flags(data, shards, output_dir), *more]


def _metrics(run: Path) -> dict:
    result = json.loads((run / "metrics.json").read_text())
    del result["training"]
    return result


if __name__ == "__main__":
    random.seed(1)
    main(int(sys.argv[1]))
