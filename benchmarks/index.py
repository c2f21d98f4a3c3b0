"""The index: queries per second, latency, recall, build time, memory and disk of each kind.

python -m benchmarks.index --documents=1000000

The vectors come from towers trained for one epoch on 25,000 queries of a toy world with as many
documents; with a million, this takes minutes. With --vectors=topics they are synthetic and take
seconds: topics have different sizes (Zipf) and directions; a document is its topic plus noise of
the same strength, times a random length (log-normal), through tanh and smooth-normalised with ε=1;
queries are drawn likewise. The noise fills all dimensions, which is harder for an approximate index
than the vectors of towers.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
from absl import flags

from benchmarks import common
from benchmarks.preparation import write_toy_world
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import TrainingSettings

FLAT, MATMUL = "flat", "TensorFlow matmul and top_k"
_TOPICS = 2000
_DEPTH = 10
_AT_ONCE = 256
_DOCUMENTS_PER_PART = 1 << 16
_WARM_UP = 5


def vectors(count: int, dim: int, seed: int) -> np.ndarray:
    """`[count, dim]` float32 smooth-normalised vectors; topics do not depend on `seed`."""
    topics = np.random.default_rng(13).normal(size=(_TOPICS, dim))
    generator = np.random.default_rng(seed)
    sizes = 1 / np.arange(1, _TOPICS + 1) ** 0.7
    made = np.empty((count, dim), np.float32)
    for begin in range(0, count, _DOCUMENTS_PER_PART):
        part = made[begin : begin + _DOCUMENTS_PER_PART]
        topic = generator.choice(_TOPICS, len(part), p=sizes / sizes.sum())
        length = 0.2 * generator.lognormal(0, 0.3, (len(part), 1))
        pooled = np.tanh(length * (topics[topic] + generator.normal(size=part.shape)))
        part[:] = pooled / (np.linalg.norm(pooled, axis=1, keepdims=True) + 1)
    return made


def write_collection(directory: str, made: str, documents: int, dim: int, queries: int) -> dict:
    """Writes `vectors` of documents as an index has them, and `queries.npy`."""
    from tf_smoothclir.index.dense_half import DenseHalf

    begin = time.perf_counter()
    if made == "trained":
        asked, parts = _trained(directory, documents, dim)
        asked = asked[np.random.default_rng(2).permutation(len(asked))[:queries]]
    else:
        asked, parts = vectors(queries, dim, seed=2), _parts(documents, dim)
    np.save(Path(directory, "queries.npy"), asked)
    with DenseHalf.writer(Path(directory, "vectors")) as write:
        for part in parts:
            write(part)
    return {"s": time.perf_counter() - begin}


def _trained(directory: str, documents: int, dim: int):
    """The vectors of all queries, and those of documents in parts."""
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.training.run_data import tokenized_set_of
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import ModelsOverSet
    from tf_smoothclir.training.train import trainer_of
    from tf_smoothclir.two_tower.scorer import SetEncoder

    write_toy_world(Path(directory), documents)
    settings = RunSettings(
        data=DataSettings(data_dir=directory, cache_dir=f"{directory}/cache"),
        model=ModelSettings(dim=dim),
        training=TrainingSettings(epochs=1),
    )
    run = RunDirectory.create(f"{directory}/run", settings)
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, SPLITS)
    trainer = trainer_of(ModelsOverSet(settings, tokenized_set), run)
    trainer.train()
    encoded = SetEncoder(trainer.task.model, tokenized_set)()
    size = _DOCUMENTS_PER_PART
    parts = (encoded.documents[at : at + size] for at in range(0, documents, size))
    return encoded.queries, parts


def build(directory: str, kind: str, documents: int, dim: int, threads: int) -> dict[str, float]:
    """Builds an index over the collection in its own directory in `directory`."""
    import faiss

    from tf_smoothclir.index.dense_half import write_index

    faiss.omp_set_num_threads(threads)
    own = Path(directory, kind)
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir()
    os.link(Path(directory, "vectors", "vectors"), own / "vectors")
    begin = time.perf_counter()
    write_index(own, dim, kind)
    seconds = time.perf_counter() - begin
    return {"build s": seconds, "disk MB": sum(p.stat().st_size for p in own.iterdir()) / 1e6}


def search(directory: str, kind: str, documents: int, dim: int, threads: int) -> dict[str, float]:
    """Times a built index, one query at a time and many at once."""
    import faiss

    from tf_smoothclir.index.dense_half import opened_ranker
    from tf_smoothclir.ops.top_k import recall

    faiss.omp_set_num_threads(threads)
    asked = np.load(Path(directory, "queries.npy"))
    before = _own_memory()
    hashes = np.arange(documents, dtype=np.uint64)
    ranker = opened_ranker(Path(directory, kind), dim, kind, hashes)()
    memory = _own_memory() - before
    measurements = _speeds(lambda some: list(ranker.rank(some, _DEPTH)), asked)
    found = (positions for positions, _ in ranker.rank(asked, _DEPTH))
    share = recall(asked, _documents(directory, dim), found, _DEPTH)
    return {**measurements, "index MB": memory, "recall@10": share}


def _own_memory() -> float:
    """The memory of this process in MB, without files that it has mapped."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1e3


def _documents(directory: str, dim: int) -> np.ndarray:
    return np.memmap(Path(directory, "vectors", "vectors"), "<f4", mode="r").reshape(-1, dim)


def matmul(directory: str, dim: int, threads: int) -> dict[str, float]:
    """Times the exact ranking that evaluation uses."""
    common.use_threads(threads)
    import tensorflow as tf

    from tf_smoothclir.ops.top_k import top_k

    collection = tf.constant(np.asarray(_documents(directory, dim)))
    measurements = _speeds(
        lambda some: top_k(some, collection, _DEPTH)[0].numpy(),
        np.load(Path(directory, "queries.npy")),
    )
    return {**measurements, "index MB": collection.shape.num_elements() * 4 / 1e6, "recall@10": 1.0}


def measure(
    *,
    documents: int,
    dim: int,
    queries: int,
    rounds: int,
    threads: int,
    kinds: list[str],
    vectors: str = "trained",
) -> list[dict]:
    """Two tables: one query at a time, and many at once."""
    with tempfile.TemporaryDirectory() as directory:
        common.in_new_process(
            partial(write_collection, directory, vectors, documents, dim, queries)
        )
        sizes = (documents, dim, threads)
        rivals: dict[str, Callable] = {}
        built: dict[str, dict[str, float]] = {}
        for name in (FLAT, *kinds):
            measurements = common.in_new_process(partial(build, directory, name, *sizes))
            built[name] = {key: measurements[key] for key in ("build s", "disk MB")}
            rivals[name] = partial(search, directory, name, *sizes)
        rivals[MATMUL] = partial(matmul, directory, dim, threads)
        built[MATMUL] = {"build s": 0.0, "disk MB": documents * dim * 4 / 1e6}
        measurements = {
            name: [{**found, **built[name]} for found in rounds_]
            for name, rounds_ in common.interleaved(rivals, rounds).items()
        }
    title = f"{documents:,} documents of {dim} dimensions ({vectors}), {threads} threads"
    return [
        common.table(f"{title}, {how}", measurements, ratio_of=ratio, references=[FLAT, MATMUL])
        for how, ratio in (
            ("one query at a time", "queries/s alone"),
            (f"{_AT_ONCE} queries at once", "queries/s at once"),
        )
    ]


def _parts(documents: int, dim: int) -> Iterator[np.ndarray]:
    """Yields the vectors of documents, the same for every rival."""
    for begin in range(0, documents, _DOCUMENTS_PER_PART):
        size = min(_DOCUMENTS_PER_PART, documents - begin)
        yield vectors(size, dim, seed=1000 + begin)


def _speeds(rank: Callable, queries: np.ndarray) -> dict[str, float]:
    for query in queries[:_WARM_UP]:
        rank(query[None])
    seconds = []
    for query in queries:
        begin = time.perf_counter()
        rank(query[None])
        seconds.append(time.perf_counter() - begin)
    batches = [queries[b : b + _AT_ONCE] for b in range(0, len(queries), _AT_ONCE)]
    rank(batches[0])
    begin = time.perf_counter()
    for batch in batches:
        rank(batch)
    return {
        "queries/s alone": len(queries) / sum(seconds),
        "p50 ms": 1000 * float(np.percentile(seconds, 50)),
        "p99 ms": 1000 * float(np.percentile(seconds, 99)),
        "queries/s at once": len(queries) / (time.perf_counter() - begin),
    }


def _define_flags() -> None:
    flags.DEFINE_integer("documents", 1_000_000, "Size of the collection.", lower_bound=_DEPTH)
    flags.DEFINE_integer("dim", 64, "Dimension of the vectors.", lower_bound=1)
    flags.DEFINE_integer("queries", 512, "Number of queries.", lower_bound=1)
    flags.DEFINE_integer("threads", 2, "Threads of FAISS and TensorFlow.", lower_bound=1)
    flags.DEFINE_list("kinds", ["hnsw"], "Kinds other than flat.")
    flags.DEFINE_enum(
        "vectors", "trained", ["trained", "topics"], "From trained towers, or synthetic."
    )


if __name__ == "__main__":
    common.run(_define_flags, measure)
