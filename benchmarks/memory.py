"""Memory of training as the tokens on disk grow: it should not.

python -m benchmarks.memory

Each size of the collection is trained on in a process of its own. It fails above `--limit` MB of
data, beside the addresses of the mapped tokens (`ulimit -d`). "MB of data" is the peak of what the
process has written to memory. "MB" includes pages of the mapped tokens, which the system takes back
when it needs them.
"""

from __future__ import annotations

import resource
import tempfile
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from absl import flags

from benchmarks import common
from benchmarks.training_rivals import speed
from benchmarks.workload import Workload, training_loop
from tf_smoothclir.utils.memory import memory_in_status

_DOCUMENT_TOKENS = 1500
_SECONDS_APART = 0.01


class DataPeak:
    """The most memory, of no file, that this process has inside a context (Linux)."""

    def __enter__(self) -> DataPeak:
        self.bytes, self._done = 0, threading.Event()
        self._watch = threading.Thread(target=self._compare)
        self._watch.start()
        return self

    def __exit__(self, *exc) -> None:
        self._done.set()
        self._watch.join()

    def _compare(self) -> None:
        while not self._done.wait(_SECONDS_APART):
            self.bytes = max(self.bytes, memory_in_status("RssAnon"))


def training(documents: int, limit: int, calls: int, threads: int) -> dict[str, float]:
    """Trains on this many documents, at most `limit` MB of data at a time."""
    workload = Workload(documents=documents, document_tokens=_DOCUMENT_TOKENS)
    settings = workload.settings(optimizer="rmsprop")
    common.use_threads(threads, settings)
    with tempfile.TemporaryDirectory() as directory, DataPeak() as peak:
        _, _, train = training_loop(workload, settings, Path(directory))
        tokens = Path(directory, "document.values").stat().st_size
        resource.setrlimit(resource.RLIMIT_DATA, (tokens + (limit << 20),) * 2)
        train(1)
        begin = time.perf_counter()
        pairs = train(calls)
        seconds = time.perf_counter() - begin
    return {
        "MB of tokens": tokens / 2**20,
        "MB of data": peak.bytes / 2**20,
        **speed(workload, pairs / workload.batch_size, seconds),
    }


def _define_flags() -> None:
    flags.DEFINE_multi_integer("documents", [100_000, 200_000, 400_000], "Sizes of the collection.")
    flags.DEFINE_integer("limit", 1000, "Megabytes that a process may have for data.")
    flags.DEFINE_integer("calls", 40, "Number of timed calls, of 16 steps each.")
    flags.DEFINE_integer("threads", 2, "Number of threads.")


def measure(
    documents: Sequence[int], limit: int, calls: int, threads: int, rounds: int
) -> list[dict]:
    """One table, a row for each size."""
    rivals = {
        f"{size:,} documents": partial(training, size, limit, calls, threads) for size in documents
    }
    measured = common.interleaved(rivals, rounds)
    first = next(iter(rivals))
    title = f"Training with at most {limit:,} MB of data"
    return [common.table(title, measured, ratio_of="MB of data", references=[first])]


if __name__ == "__main__":
    common.run(_define_flags, measure)
