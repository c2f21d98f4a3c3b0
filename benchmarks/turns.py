"""Training loops measured in turn in one process, a few seconds of each at a time.

The speed of a process depends on where its tables happen to lie and on what else the machine does.
That varies by more than the differences to be measured here.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import common
from benchmarks.training_rivals import speed
from benchmarks.workload import Workload, training_loop
from tf_smoothclir.settings.run import RunSettings

_TURNS = 6
_COUNTED_BATCHES = 5


def measured_in_turn(
    rivals: Mapping[str, tuple[Workload, RunSettings]], *, rounds: int, threads: int, calls: int
) -> dict[str, list[dict[str, float]]]:
    """Measures training loops."""
    measurements = {name: [] for name in rivals}
    for _ in range(rounds):
        found = common.in_new_process(partial(_in_turn, dict(rivals), threads, calls))
        surroundings = {name: found[name] for name in ("MB", "load")}
        for name in rivals:
            measurements[name].append({**found[name], **surroundings})
    return measurements


def _in_turn(
    rivals: Mapping[str, tuple[Workload, RunSettings]], threads: int, calls: int
) -> dict[str, dict[str, float]]:
    _, first_settings = next(iter(rivals.values()))
    common.use_threads(threads, first_settings)
    seconds, pairs = dict.fromkeys(rivals, 0.0), dict.fromkeys(rivals, 0)
    with tempfile.TemporaryDirectory() as directory:
        train: dict[str, Callable] = {}
        rows = {}
        for number, (name, (workload, settings)) in enumerate(rivals.items()):
            folder = Path(directory, str(number))
            folder.mkdir()
            _, batches, train[name] = training_loop(workload, settings, folder)
            rows[name] = _rows_a_step(batches)
            train[name](calls)
        for turn in range(_TURNS):
            for name in list(rivals)[:: -1 if turn % 2 else 1]:
                begin = time.perf_counter()
                pairs[name] += train[name](calls)
                seconds[name] += time.perf_counter() - begin
    return {
        name: {
            **speed(workload, pairs[name] / workload.batch_size, seconds[name]),
            "rows a step": rows[name],
        }
        for name, (workload, _) in rivals.items()
    }


def _rows_a_step(batches) -> float:
    touched = []
    for _ in range(_COUNTED_BATCHES):
        inputs, _ = next(batches)
        touched.append(sum(len(np.unique(tokens.ids)) for tokens in inputs.texts))
    return float(np.mean(touched))
