"""Kills processes again and again while they train: `python -m tests.training.kill_rounds ROUNDS`.

Each round kills one of two workers, drawn at random, at a random moment (while it starts, connects,
trains, validates or saves), starts it again, and waits until training goes on. Then the run is let
finish, and its figures must be those of a run that nobody disturbed.

With `ps` behind ROUNDS, one of a chief, two workers and two parameter servers is killed, and the
run must have trained on as many pairs, to about the same loss.
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

from tests.training.distributed.worker_processes import TWO_WORKERS, WorkerProcesses, run_flags
from tests.training.tiny_set import write_tiny_set

_MOST_SECONDS = 12.0  # after the last kill; a worker takes about half of it to join again
_SERVED = {"chief": 1, "worker": 2, "ps": 2}
_EPOCHS = {"worker": 600, "ps": 240}  # by the last job; more than twenty rounds need


def main(rounds: int, jobs: dict[str, int]) -> None:
    """Does so many rounds."""
    everybody = range(sum(jobs.values()))
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        flags = _flags(directory, jobs)
        with WorkerProcesses(directory / "whole-logs", flags(directory / "whole"), jobs) as workers:
            workers.start(*everybody)
            assert [workers.end(number) for number in everybody] == [0] * len(everybody)
        with WorkerProcesses(directory / "logs", flags(directory / "run"), jobs) as workers:
            workers.start(*everybody)
            workers.wait_for(0, "Epoch ")
            for number in range(rounds):
                _kill_one(workers, number, random.choice(everybody))
            ends = [workers.end(number) for number in everybody]
            logs = "".join(workers.log(number) for number in everybody)
            assert ends == [0] * len(everybody), logs
        assert "Traceback" not in logs, logs
        found, expected = _figures(directory / "run"), _figures(directory / "whole")
        if jobs is _SERVED:
            losses = [figures["history"][-1]["loss"] for figures in (found, expected)]
            print(f"loss {losses[0]:.5f}, undisturbed {losses[1]:.5f}")
            assert abs(losses[0] / losses[1] - 1) < 0.1
            assert len(found["history"]) == len(expected["history"])
        else:
            assert found == expected
    print(f"{rounds} rounds, the same figures in the end")


def _kill_one(workers: WorkerProcesses, number: int, victim: int) -> None:
    begin, before = time.monotonic(), workers.log(0).count("Epoch ")
    time.sleep(random.uniform(0, _MOST_SECONDS))
    if not workers.is_running(victim):
        raise AssertionError(f"process {victim} has ended:\n{workers.log(victim)}")
    workers.send(victim, signal.SIGKILL)
    workers.end(victim)
    time.sleep(random.choice((0, 0, 1, 3)))
    workers.start(victim)
    done = workers.log(0).count("Epoch ")
    workers.wait_for(0, "Epoch ", times=done + 1)
    seconds = time.monotonic() - begin
    print(f"round {number + 1}: process {victim}, {done - before} epochs before,", end=" ")
    print(f"goes on after {seconds:.1f} s", flush=True)


def _flags(directory: Path, jobs: dict[str, int]):
    data = [f"--data_dir={write_tiny_set(directory / 'data')}", f"--cache_dir={directory}/cache"]
    shards = str(directory / "shards")
    arguments = [*data, "--negatives=3", "--num_shards=4", f"--output_dir={shards}"]
    subprocess.run([sys.executable, "-m", "trainers.write_shards", *arguments], check=True)
    more = [f"--epochs={_EPOCHS[[*jobs][-1]]}", "--checkpoint_minutes=0.005"]
    more += ["--optimizer=adagrad", "--learning_rate=0.1"] if jobs is _SERVED else []
    return lambda output_dir: [*run_flags(data, shards, output_dir), *more]


def _figures(run: Path) -> dict:
    result = json.loads((run / "metrics.json").read_text())
    del result["training"]
    return result


if __name__ == "__main__":
    random.seed(1)
    main(int(sys.argv[1]), _SERVED if "ps" in sys.argv[2:] else TWO_WORKERS)
