"""Forms of the vectors in a search model: memory, latency, and how many of the best they find.

python -m benchmarks.search_vectors --export_dir=models

Encodes the documents of the set that an export was trained on and the queries of one split, and
ranks all documents in a TensorFlow graph, by vectors alone. `--copies` makes the collection larger:
each further copy has a little noise. recall@10 is the share of the exact ranking's best documents.
The forms are measured in turn in one process.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common, quantised
from tf_smoothclir.data.sources.source import SPLITS

_TYPES = ("float32", "int8", "binary")
_BATCH, _TURNS, _DEPTH = 32, 60, 10
_NOISE = 0.02  # of the length of a vector
_SEED = 13


def measure(*, export_dir: str, split: str, copies: int, rounds: int = 1) -> list[dict]:
    """A table with a row for each form of the vectors."""
    measured = {name: [] for name in _TYPES}
    with tempfile.TemporaryDirectory() as directory:
        sizes = common.in_new_process(partial(quantised.encode, export_dir, split, directory))
        for _ in range(rounds):
            found = common.in_new_process(partial(_in_turn, directory, int(sizes["dim"]), copies))
            for name in _TYPES:
                measured[name].append({**found[name], "MB": found["MB"], "load": found["load"]})
    documents = int(sizes["documents"]) * copies
    title = f"{documents:,} documents of {sizes['dim']} dimensions, {split} queries"
    return [common.table(title, measured, ratio_of="p50 ms", references=["float32"])]


def _in_turn(directory: str, dim: int, copies: int) -> dict[str, dict[str, float]]:
    from tf_smoothclir.publishing.exported_vectors import collection_vectors

    vectors = np.fromfile(Path(directory, "vectors", "vectors"), "<f4").reshape(-1, dim)
    generator = np.random.default_rng(_SEED)
    noisy = [
        vectors + generator.normal(scale=_NOISE / dim**0.5, size=vectors.shape).astype(np.float32)
        for _ in range(copies - 1)
    ]
    vectors = np.concatenate([vectors, *noisy])
    queries = np.load(Path(directory, "queries.npy"))
    held = {name: collection_vectors(vectors, name, _DEPTH) for name in _TYPES}
    search = {name: _search(one, dim) for name, one in held.items()}
    exact = search["float32"](queries[:_TURNS])
    measured = {}
    for name, one in held.items():
        same = [len(set(a) & set(b)) for a, b in zip(search[name](queries[:_TURNS]), exact)]
        megabytes = sum(variable.numpy().nbytes for variable in one.variables) / 1e6
        measured[name] = {"vectors MB": megabytes, "recall@10": float(np.mean(same)) / _DEPTH}
    for size, unit in ((1, "p50 ms"), (_BATCH, f"p50 ms of {_BATCH} queries")):
        seconds = {name: [] for name in _TYPES}
        for turn in range(_TURNS):
            begin = turn * size % max(1, len(queries) - size)
            for name in _TYPES:
                started = time.perf_counter()
                search[name](queries[begin : begin + size])
                seconds[name].append(time.perf_counter() - started)
        for name in _TYPES:
            measured[name][unit] = 1000 * float(np.median(seconds[name]))
    return measured


def _search(vectors, dim: int) -> Callable[[np.ndarray], np.ndarray]:
    import tensorflow as tf

    signature = [tf.TensorSpec([None, dim], tf.float32)]
    best = tf.function(
        lambda queries: tf.math.top_k(vectors.scores(queries), _DEPTH).indices,
        input_signature=signature,
    )
    return lambda queries: best(tf.constant(queries)).numpy()


def _define_flags() -> None:
    flags.DEFINE_string("export_dir", "models", "Directory that smoothclir-export wrote to.")
    flags.DEFINE_enum("split", "test", SPLITS, "Whose queries are asked.")
    flags.DEFINE_integer("copies", 1, "Times the documents are in the collection.", lower_bound=1)


def _measure(values: flags.FlagValues) -> list[dict]:
    return measure(
        export_dir=values.export_dir,
        split=values.split,
        copies=values.copies,
        rounds=values.rounds,
    )


if __name__ == "__main__":
    common.run(_define_flags, _measure)
