"""Scaling: milliseconds a training step by size of the tables, length of documents, and batch.

python -m benchmarks.scaling
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from benchmarks.step_timer import dataset_of, seconds_per_step
from benchmarks.workload import Workload, prepared_set, two_tower

STANDARD = "standard"
_COUNTED_BATCHES = 5


def step(workload: Workload, optimizer: str, steps: int, threads: int) -> dict[str, float]:
    """Fits the package's model on batches from the token store."""
    common.use_threads(threads)
    settings = workload.settings(optimizer=optimizer)
    model = two_tower(workload, settings)
    with tempfile.TemporaryDirectory() as directory:
        dataset = dataset_of(prepared_set(workload, Path(directory)), settings).take(steps)
        seconds = seconds_per_step(model, dataset)
        touched = [
            sum(len(np.unique(tokens["ids"])) for tokens in inputs.values())
            for inputs, _ in dataset.take(_COUNTED_BATCHES)
        ]
    return {
        "ms/step": 1000 * seconds,
        "pairs/s": workload.batch_size / seconds,
        "rows a step": float(np.mean(touched)),
    }


def sizes(base: Workload) -> dict[str, Workload]:
    """Returns the workloads to compare: the base, and what differs from it in one size."""
    changes = {
        "10,000 rows": {"vocabulary": 10_000},
        "1,000,000 rows, 100,000 in use": {
            "vocabulary": 1_000_000,
            "tokens_in_use": base.vocabulary,
        },
        "1,000,000 rows": {"vocabulary": 1_000_000},
        "50 document tokens": {"document_tokens": 50},
        "400 document tokens": {"document_tokens": 400},
        "64 pairs": {"batch_size": 64},
        "512 pairs": {"batch_size": 512},
    }
    others = {name: dataclasses.replace(base, **change) for name, change in changes.items()}
    return {STANDARD: base, **others}


def measure(
    workloads: Mapping[str, Workload], *, optimizer: str, rounds: int, steps: int, threads: int
) -> list[dict]:
    """Returns the table.

    Args:
        workloads: As `sizes` returns them.
        optimizer: One of the package's.
        rounds: How often each size is measured.
        steps: Of each measurement.
        threads: Of TensorFlow.
    """
    rivals = {
        name: partial(step, workload, optimizer, steps, threads)
        for name, workload in workloads.items()
    }
    base = workloads[STANDARD]
    return [
        common.table(
            f"A training step, {optimizer}; standard: {base.vocabulary:,} rows,"
            f" {base.document_tokens} document tokens, {base.batch_size} pairs",
            common.interleaved(rivals, rounds),
            ratio_of="ms/step",
            references=[STANDARD],
        )
    ]


def _define_flags() -> None:
    flags.DEFINE_string("optimizer", "rmsprop", "Optimizer of the package.")
    flags.DEFINE_integer("steps", 100, "Steps of each measurement.", lower_bound=33)
    flags.DEFINE_integer("threads", 2, "Threads of TensorFlow.", lower_bound=1)


def _measure(values: flags.FlagValues) -> list[dict]:
    # Enough queries for so many steps of the largest batch.
    base = Workload(queries=values.steps * 512 // 53 + 1, documents=5000)
    return measure(
        sizes(base),
        optimizer=values.optimizer,
        rounds=values.rounds,
        steps=values.steps,
        threads=values.threads,
    )


if __name__ == "__main__":
    common.run(_define_flags, _measure)
