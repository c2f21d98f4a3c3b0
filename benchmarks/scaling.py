"""Scaling: milliseconds per training step by table size, document length and batch size.

python -m benchmarks.scaling
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from absl import flags

from benchmarks import common
from benchmarks.turns import measured_in_turn
from benchmarks.workload import FIRST_TOKEN, Workload

STANDARD = "standard"
_CALLS = 20


def sizes(base: Workload) -> dict[str, Workload]:
    """The workloads to compare: the base, and variants in one size each."""
    million = {"vocabulary": 1_000_000}
    same_words = {**million, "tokens_in_use": base.vocabulary - FIRST_TOKEN}
    changes = {
        "10,000 rows": {"vocabulary": 10_000},
        "1,000,000 rows, the first 100,000 in use": same_words,
        "1,000,000 rows, 2% of the tokens beyond these": {**same_words, "rare_tokens": 0.02},
        "1,000,000 rows, every tenth in use": {**same_words, "rows_apart": 10},
        "1,000,000 rows, a Zipf draw over all": million,
        "50 document tokens": {"document_tokens": 50},
        "400 document tokens": {"document_tokens": 400},
        "64 pairs": {"batch_size": 64},
        "512 pairs": {"batch_size": 512},
    }
    others = {name: dataclasses.replace(base, **change) for name, change in changes.items()}
    return {STANDARD: base, **others}


def measure(
    workloads: Mapping[str, Workload],
    *,
    optimizer: str,
    rounds: int,
    threads: int,
    calls: int = _CALLS,
) -> list[dict]:
    """The table."""
    rivals = {name: (w, w.settings(optimizer=optimizer)) for name, w in workloads.items()}
    base = workloads[STANDARD]
    return [
        common.table(
            f"A training step, {optimizer}; standard: {base.vocabulary:,} rows,"
            f" {base.document_tokens} document tokens, {base.batch_size} pairs",
            measured_in_turn(rivals, rounds=rounds, threads=threads, calls=calls),
            ratio_of="ms/step",
            references=[STANDARD],
        )
    ]


def _define_flags() -> None:
    flags.DEFINE_string("optimizer", "rmsprop", "Optimizer of the package.")
    flags.DEFINE_integer("threads", 2, "Threads of TensorFlow.", lower_bound=1)


def _measure(optimizer: str, rounds: int, threads: int) -> list[dict]:
    return measure(sizes(Workload()), optimizer=optimizer, rounds=rounds, threads=threads)


if __name__ == "__main__":
    common.run(_define_flags, _measure)
