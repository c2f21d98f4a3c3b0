"""Training on shuffled pairs and on whole lists: the trainer's steps, in turn in one process.

python -m benchmarks.batching
"""

from __future__ import annotations

from absl import flags

from benchmarks import common
from benchmarks.turns import measured_in_turn
from benchmarks.workload import Workload

BATCHINGS = ("pairs", "lists")
_CALLS = 60


def measure(workload: Workload, *, rounds: int, threads: int, calls: int = _CALLS) -> list[dict]:
    """The table; see `measured_in_turn` for the arguments."""
    rivals = {batching: (workload, workload.settings(batching=batching)) for batching in BATCHINGS}
    return [
        common.table(
            "Training by pairs and by lists",
            measured_in_turn(rivals, rounds=rounds, threads=threads, calls=calls),
            ratio_of="pairs/s",
            references=["pairs"],
        )
    ]


def _define_flags() -> None:
    flags.DEFINE_integer("threads", 2, "Threads of TensorFlow.", lower_bound=1)


def _measure(values: flags.FlagValues) -> list[dict]:
    return measure(Workload(), rounds=values.rounds, threads=values.threads)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
