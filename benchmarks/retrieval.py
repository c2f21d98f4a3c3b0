"""Retrievers of an export: build time, size, and latency of one query at a time as documents grow.

python -m benchmarks.retrieval --export_dir=runs/train --documents=100000

Takes the export of a run, and of a hybrid one all three retrievers. The collection is made of the
texts that the run was trained on: each document is the first half of one text and the second half
of another, both drawn at random, so words are as frequent, and stand together, nearly as in real
texts. Queries are those of the set. "search" calls the search in a process; "server" asks
smoothclir-serve --ui for /api/search over HTTP, which explains the hits too. CPU is that of the
process that asks: of the search in a process, but only of the client of a server.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from tf_smoothclir.data.sources.memory import MemorySource, Streamed
from tf_smoothclir.data.sources.source import Text

_DEPTH = 10
_WARM_UP = 20
_PATIENCE = 60.0  # seconds


class MixedTexts(MemorySource):
    """Halves of real texts, put together at random; the same ones for the same number."""

    def __init__(self, texts: Sequence[str], documents: int):
        """Mixes `texts`."""
        super().__init__([], Streamed(self._mixed), [])
        self.name = f"{documents} mixed texts"
        self._mixture, self._number = texts, documents

    def _mixed(self) -> Iterator[Text]:
        random = np.random.default_rng(13)
        for number in range(self._number):
            first, second = (
                self._mixture[place].split() for place in random.integers(0, len(self._mixture), 2)
            )
            words = first[: len(first) // 2 + 1] + second[len(second) // 2 :]
            yield Text(f"d{number}", "", " ".join(words))

    def fingerprint(self) -> str:
        return f"{self.name} {len(self._mixture)}"


def build(
    export_dir: str,
    index_dir: str,
    documents: int,
    index_type: str = "auto",
    retrievers: Sequence[str] = (),
) -> dict[str, float]:
    """Builds the index of a collection; `queries.json` beside it gets the queries."""
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.index.builder import build_index

    alone = retrievers[0] if len(retrievers) == 1 else ""
    halves, manifest = common.halves_of_export(export_dir, index_type, alone)
    source = source_of(manifest.data)
    collection = MixedTexts([text.text for text in source.documents()], documents)
    begin = time.perf_counter()
    build_index(index_dir, collection, halves, manifest)
    seconds = time.perf_counter() - begin
    queries = [text.text for text in source.queries() if text.text.strip()]
    Path(index_dir).with_name("queries.json").write_text(json.dumps(queries))
    sizes = {f"{half.name} MB": _megabytes(Path(index_dir, half.name)) for half in halves}
    return {"build s": seconds, **sizes}


def search(export_dir: str, index_dir: str, retriever: str, queries: int) -> dict[str, float]:
    """Times the search of a retriever, one query at a time."""
    from tf_smoothclir.search.opening import open_search

    opened = open_search(export_dir, index_dir, lambda data: data, retriever=retriever)
    return _percentiles(lambda query: opened.search([query], _DEPTH), _asked(index_dir, queries))


def server(export_dir: str, index_dir: str, retriever: str, queries: int) -> dict[str, float]:
    """Times answers of the server's page, one query at a time."""
    with _serving(export_dir, index_dir, retriever) as connection:

        def ask(query: str) -> None:
            fields = urllib.parse.urlencode({"q": query, "k": _DEPTH})
            connection.request("GET", f"/api/search?{fields}")
            with connection.getresponse() as response:
                if response.status != 200 or not json.load(response)["results"]:
                    raise RuntimeError(f"{query!r}: the server found nothing")

        return _percentiles(ask, _asked(index_dir, queries))


@contextlib.contextmanager
def _serving(
    export_dir: str, index_dir: str, retriever: str
) -> Iterator[http.client.HTTPConnection]:
    command = [sys.executable, "-m", "export.serve", "--ui", "--port=0"]
    command += [f"--export_dir={export_dir}", f"--index_dir={index_dir}"]
    command += [f"--retriever={retriever}", "--verbosity=-1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            address = child.stdout.readline().strip().removeprefix("http://")
            with contextlib.closing(http.client.HTTPConnection(address, timeout=_PATIENCE)) as one:
                yield one
        finally:
            child.terminate()


def _asked(index_dir: str, number: int) -> list[str]:
    """Queries, chosen at random; some more than once if there are too few."""
    queries = json.loads(Path(index_dir).with_name("queries.json").read_text())
    order = np.random.default_rng(2).permutation(len(queries))
    return [queries[place] for place in np.resize(order, number + _WARM_UP)]


def _percentiles(ask: Callable[[str], object], queries: Sequence[str]) -> dict[str, float]:
    """Milliseconds an answer, and those of CPU in this process, after some that warm up."""
    seconds = []
    for query in queries:
        begin, worked = time.perf_counter(), time.process_time()
        ask(query)
        seconds.append((time.perf_counter() - begin, time.process_time() - worked))
    passed, worked = 1000 * np.array(seconds[_WARM_UP:]).T
    return {
        "mean ms": float(passed.mean()),
        "p50 ms": float(np.percentile(passed, 50)),
        "p99 ms": float(np.percentile(passed, 99)),
        "CPU p50 ms": float(np.percentile(worked, 50)),
        "CPU p99 ms": float(np.percentile(worked, 99)),
    }


def _megabytes(directory: Path) -> float:
    return sum(path.stat().st_size for path in directory.iterdir()) / 1e6


def measure(
    *,
    export_dir: str,
    documents: Sequence[str | int],
    retrievers: Sequence[str],
    queries: int,
    rounds: int,
    index_type: str = "auto",
) -> list[dict]:
    """Two tables for each size: how the index was built, and latency."""
    tables = []
    for size in map(int, documents):
        with tempfile.TemporaryDirectory() as directory:
            index_dir = f"{directory}/index"
            begin = partial(build, export_dir, index_dir, size, index_type, retrievers)
            built = common.in_new_process(begin)
            rivals = {
                f"{name}, {way.__name__}": partial(way, export_dir, index_dir, name, queries)
                for name in retrievers
                for way in (search, server)
            }
            measured = common.interleaved(rivals, rounds)
        title, references = f"{size:,} documents", [next(iter(rivals))]
        tables += [
            common.table(
                f"{title}, index", {"built": [built]}, ratio_of="build s", references=["built"]
            ),
            common.table(
                f"{title}, top {_DEPTH}", measured, ratio_of="p50 ms", references=references
            ),
        ]
    return tables


def _define_flags() -> None:
    flags.DEFINE_string("export_dir", "runs/train", "Directory that smoothclir-export wrote to.")
    flags.DEFINE_list("documents", ["100000"], "Sizes of the collection.")
    flags.DEFINE_list("retrievers", ["lexical", "hybrid", "dense"], "Retrievers to measure.")
    flags.DEFINE_integer("queries", 500, "Number of queries.", lower_bound=1)
    flags.DEFINE_string("index_type", "auto", "That of smoothclir-index.")


if __name__ == "__main__":
    common.run(_define_flags, measure)
