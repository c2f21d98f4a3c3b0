"""What was measured of a system, as a JSON file beside its TREC files."""

from __future__ import annotations

import dataclasses
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.records import record_from_json

_RESULT = "result.json"
_WARM_UP = 10  # queries that are not timed
_FIRST_BATCH = 64  # texts that are encoded at once
_ENOUGH_SECONDS = 2.0  # for the speed of encoding


@dataclasses.dataclass(frozen=True)
class Latency:
    """What one query costs on one core, in milliseconds."""

    median: float  # of the timed queries
    p99: float  # of the same
    queries: int  # how many were timed


@dataclasses.dataclass(frozen=True)
class Measured:
    """What was measured of a system."""

    title: str  # for tables
    key: str  # digest of all that the result depends on; another one means another measurement
    evaluation: str  # directory of the TREC files of the test split
    ours: bool  # whether it is a run of this package
    quality: float  # on validation: the mean of NDCG@5 and full MRR@10
    seconds: float  # time spent on learning and indexing
    tuned_seconds: float  # time spent on all variants; 0 where there is none to choose from
    setting: str  # of the chosen variant, or what a run chose
    tried: dict[str, float]  # setting -> quality of each variant
    latency: Latency  # of single queries
    megabytes: float  # peak memory of the process
    load: float  # of the machine in the minute before
    packages: dict[str, str]  # distribution -> version
    # Of the process that learned, until it had evaluated, on all cores; 0 for a run that was
    # given.
    cpu_seconds: float = 0.0
    # Documents that one core encodes and, for runs of ours, indexes; 0 if nothing is encoded.
    texts_per_second: float = 0.0

    def save(self, directory: Path) -> None:
        """Writes the result of a directory."""
        write_json(directory / _RESULT, dataclasses.asdict(self))

    def figures(self) -> dict:
        """All but what belongs to this machine: the paths and the key."""
        values = dataclasses.asdict(self)
        return {k: v for k, v in values.items() if k not in ("title", "key", "evaluation")}

    @classmethod
    def load_from(cls, directory: Path) -> Measured | None:
        """Reads what `save` wrote; None if there is nothing."""
        path = directory / _RESULT
        if not path.is_file():
            return None
        try:
            return record_from_json(cls, read_json(path))
        except ValueError as error:
            remedy = "Delete the file to measure again"
            raise input_error(path, str(error).rstrip("."), remedy) from error


def latency_of(answer: Callable[[str], object], queries: Sequence[str]) -> Latency:
    """Times single queries, one after the other, with all threads of this process on one core."""
    _stay_on_one_core()
    seconds = []
    for query in queries:
        begin = time.perf_counter()
        answer(query)
        seconds.append(time.perf_counter() - begin)
    timed = np.array(seconds[min(_WARM_UP, len(seconds) - 1) :]) * 1000
    return Latency(float(np.median(timed)), float(np.quantile(timed, 0.99)), len(timed))


def texts_per_second(encode: Callable[[list[str]], object], texts: Sequence[str]) -> float:
    """Times batches of texts, each twice as large as the one before, and takes the last.

    All threads of this process stay on one core.
    """
    _stay_on_one_core()
    size, seconds = _FIRST_BATCH // 2, 0.0
    while seconds < _ENOUGH_SECONDS and size < len(texts):
        size = min(2 * size, len(texts))
        begin = time.perf_counter()
        encode(list(texts[:size]))
        seconds = time.perf_counter() - begin
    return size / seconds


def _stay_on_one_core() -> None:
    """Moves every thread of this process to one core, where the system can do that."""
    tasks = Path("/proc/self/task")
    if tasks.is_dir():
        core = {min(os.sched_getaffinity(0))}
        for task in tasks.iterdir():
            os.sched_setaffinity(int(task.name), core)


def failure(error: BaseException) -> str:
    """One line about an error, such as "ValueError: there is no pair"."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    kind = "" if isinstance(error, InputError) else f"{type(error).__name__}: "
    return f"{kind}{lines[0] if lines else 'no message'}"
