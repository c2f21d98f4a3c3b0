"""Training by shuffled pairs and by whole lists: steps of the trainer, in turn in one process.

python -m benchmarks.batching

How fast a process trains depends on where its tables happen to lie and on what else the machine
does, by more than the two differ. So both are in each process, some seconds of one after some of
the other.
"""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path

from absl import flags

from benchmarks import common
from benchmarks.training_rivals import speed
from benchmarks.workload import Workload, training_loop

BATCHINGS = ("pairs", "lists")
_CALLS = 60  # of the graph before it is the other's turn
_TURNS = 6


def both(workload: Workload, threads: int, calls: int) -> dict[str, dict[str, float]]:
    """Returns the speed of either batching, from as many steps of both.

    Args:
        workload: Sizes.
        threads: Of TensorFlow.
        calls: Of the graph in a turn.
    """
    common.use_threads(threads, workload.settings())
    seconds, pairs = dict.fromkeys(BATCHINGS, 0.0), dict.fromkeys(BATCHINGS, 0)
    with tempfile.TemporaryDirectory() as directory:
        train = {}
        for batching in BATCHINGS:
            folder, settings = Path(directory, batching), workload.settings(batching=batching)
            folder.mkdir()
            _, _, train[batching] = training_loop(workload, settings, folder)
            train[batching](calls)  # warms up
        for turn in range(_TURNS):
            for batching in BATCHINGS[:: -1 if turn % 2 else 1]:
                begin = time.perf_counter()
                pairs[batching] += train[batching](calls)
                seconds[batching] += time.perf_counter() - begin
    return {b: speed(workload, pairs[b] / workload.batch_size, seconds[b]) for b in BATCHINGS}


def measure(workload: Workload, *, rounds: int, threads: int, calls: int = _CALLS) -> list[dict]:
    """Returns the table.

    Args:
        workload: Sizes.
        rounds: How many processes there are, one after the other.
        threads: Of TensorFlow.
        calls: Of the graph in a turn.
    """
    figures = {batching: [] for batching in BATCHINGS}
    for _ in range(rounds):
        found = common.in_new_process(partial(both, workload, threads, calls))
        for batching in BATCHINGS:
            surroundings = {name: found[name] for name in ("MB", "load")}  # of both together
            figures[batching].append({**found[batching], **surroundings})
    return [
        common.table(
            "Training by pairs and by lists", figures, ratio_of="pairs/s", references=["pairs"]
        )
    ]


def _define_flags() -> None:
    flags.DEFINE_integer("threads", 2, "Threads of TensorFlow.", lower_bound=1)


def _measure(values: flags.FlagValues) -> list[dict]:
    return measure(Workload(), rounds=values.rounds, threads=values.threads)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
