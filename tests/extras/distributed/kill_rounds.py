"""Kills workers again and again while they train.

To be run as `python -m tests.extras.distributed.kill_rounds ROUNDS`.
Each round kills one of two workers, chosen at random, at a random moment (while it starts,
connects, trains, validates or saves), restarts it, and waits until training continues. Then the run
finishes, and its metrics must equal those of an undisturbed run.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.extras.distributed.worker_processes import WorkerProcesses, run_flags
from tests.training.tiny_set import write_tiny_set

_MAX_SECONDS = 12.0  # since the last kill; a worker takes about half of it to join again
_MORE = ["--epochs=600", "--checkpoint_minutes=0.005"]  # more than twenty rounds need


def main(rounds: int) -> None:
    """Runs `rounds` rounds."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        data = [f"--data_dir={write_tiny_set(directory / 'data')}", f"--cache_dir={name}/cache"]
        arguments = [*data, "--negatives=3", "--num_shards=4", f"--output_dir={name}/shards"]
        module = "tf_smoothclir.extras.distributed.write_shards"
        subprocess.run([sys.executable, "-m", module, *arguments], check=True)
        metrics = [_trained(directory, data, number) for number in (0, rounds)]
        assert metrics[0] == metrics[1]
    print(f"{rounds} rounds, the same metrics in the end")


def _trained(directory: Path, data: list[str], rounds: int) -> dict:
    run = directory / f"run{rounds}"
    flags = [*run_flags(data, directory / "shards", run), *_MORE]
    with WorkerProcesses(directory / f"logs{rounds}", flags) as workers:
        workers.start(0, 1)
        workers.wait_for(0, "Epoch ")
        for number in range(rounds):
            _kill_one(workers, number, random.choice((0, 1)))
        workers.finish()
        assert "Traceback" not in workers.log(0) + workers.log(1)
    result = json.loads((run / "metrics.json").read_text())
    del result["training"]
    return result


def _kill_one(workers: WorkerProcesses, number: int, victim: int) -> None:
    begin = time.monotonic()
    time.sleep(random.uniform(0, _MAX_SECONDS))
    if not workers.is_running(victim):
        raise AssertionError(f"worker {victim} has ended:\n{workers.log(victim)}")
    workers.kill(victim)
    time.sleep(random.choice((0, 0, 1, 3)))
    workers.start(victim)
    workers.wait_for(0, "Epoch ", times=workers.log(0).count("Epoch ") + 1)
    seconds = time.monotonic() - begin
    print(f"round {number + 1}: worker {victim}, continues after {seconds:.1f} s", flush=True)


if __name__ == "__main__":
    random.seed(1)
    main(int(sys.argv[1]))
