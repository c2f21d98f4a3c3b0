"""Training on both stacks: pairs per second in this Python and in one of the other stack.

python -m benchmarks.stacks --other=PYTHON
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from absl import flags

from benchmarks import common
from benchmarks.training import parse_variant, trainer
from benchmarks.workload import Workload

_ROOT = Path(__file__).resolve().parents[1]
# Runs `report` in the other Python; its arguments follow.
_PROGRAM = "import sys; from benchmarks.stacks import report; report(*sys.argv[1:])"


def report(variant: str, queries: str, vocabulary: str, threads: str) -> None:
    """Prints the measurements of `benchmarks.training.trainer` as JSON in the last line."""
    workload = Workload(queries=int(queries), vocabulary=int(vocabulary))
    rival = partial(trainer, workload, int(threads), parse_variant(variant))
    measurements = common.in_this_process(rival)
    import tensorflow as tf

    print(json.dumps({"stack": f"TensorFlow {tf.__version__}", "measurements": measurements}))


def measure(
    other: str,
    *,
    variant: Sequence[str],
    queries: int,
    vocabulary: int,
    rounds: int,
    threads: int,
) -> list[dict]:
    """A table for each variant."""
    tables = []
    for named in variant:
        measurements, names = {}, {}
        for number in range(rounds):
            for python in (sys.executable, other)[:: -1 if number % 2 else 1]:
                arguments = [named, queries, vocabulary, threads]
                found = _reported(python, list(map(str, arguments)))
                names[python] = f"{found['stack']}, {Path(python).parent.parent.name}"
                measurements.setdefault(names[python], []).append(found["measurements"])
        tables.append(
            common.table(
                f"Training, {named}, tables {vocabulary:,} x {Workload.dim}, {threads} threads",
                measurements,
                ratio_of="pairs/s",
                references=[names[other]],
            )
        )
    return tables


def _reported(python: str, arguments: list[str]) -> dict:
    done = subprocess.run(
        [python, "-c", _PROGRAM, *arguments],
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout.splitlines()[-1])


def _define_flags() -> None:
    flags.DEFINE_string("other", None, "Python interpreter of the other stack.", required=True)
    flags.DEFINE_multi_string(
        "variant",
        ["optimizer=rmsprop", "optimizer=lazy_adam"],
        "Training settings to measure; may be repeated.",
    )
    flags.DEFINE_integer("threads", 2, "Threads of TensorFlow.", lower_bound=1)
    flags.DEFINE_integer("queries", 4000, "Training queries of 53.6 pairs.", lower_bound=1)
    flags.DEFINE_integer("vocabulary", 100_000, "Rows of each table.", lower_bound=3)


if __name__ == "__main__":
    common.run(_define_flags, measure)
