"""Milvus beside the index on disk: documents/s written, milliseconds per query, recall.

python -m benchmarks.engine --documents=20000
python -m benchmarks.engine --documents=1000000 --uri=http://localhost:19530
python -m benchmarks.engine --run_dir=runs/hybrid

Without --uri, Milvus Lite in a temporary file: a stand-in for tests, slower than a server. Vectors
are those of `benchmarks.index --vectors=topics`. With --words, each document has impacts of 300
words too, and each query asks for 12, drawn by Zipf's law from 30,000; Milvus adds both scores.
Queries come one at a time; answers have titles and texts of the best ten.

With --run_dir, no engine is asked: the table shows which share of the ten best documents by the sum
of a hybrid run's scores is found if only so many candidates of each half are added up, and how
often the first one is the same. The queries are those of the test split.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from absl import flags

from benchmarks import common
from benchmarks.index import vectors
from tf_smoothclir.data.sources.memory import MemorySource, Streamed
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.export_directory import ExportManifest
from tf_smoothclir.settings.data import DataSettings

FLAT, HNSW, MILVUS, MILVUS_WORDS = "on disk, flat", "on disk, hnsw", "Milvus", "Milvus, words too"
_NAME = "smoothclir_benchmark"
_DEPTH, _WARM_UP = 10, 5
_OF_WORDS = 0.05  # both scores then vary about as much
_VOCABULARY, _WORDS_PER_DOCUMENT, _WORDS_PER_QUERY = 30_000, 300, 12


class _Numbers(MemorySource):
    """Documents whose text is their number."""

    def __init__(self, documents: int):
        super().__init__([], Streamed(self._numbers), [])
        self._number = documents

    def _numbers(self) -> Iterator[Text]:
        for number in range(self._number):
            yield Text(str(number), f"Title {number}", str(number))

    def fingerprint(self) -> str:
        return str(self._number)


def words_of(texts: int, words: int, seed: int) -> sp.csr_array:
    """`[texts, vocabulary]` float32, positive weights of up to `words` words each."""
    generator = np.random.default_rng(seed)
    chances = 1 / (10 + np.arange(_VOCABULARY - 1))
    drawn = generator.choice(_VOCABULARY - 1, (texts, words), p=chances / chances.sum()) + 1
    weights = generator.exponential(size=drawn.size).astype(np.float32)
    rows = np.repeat(np.arange(texts), words)
    return sp.csr_array((weights, (rows, drawn.ravel())), shape=(texts, _VOCABULARY))


def _halves(kind: str, documents: int, dim: int, *, words: bool) -> list:
    """Halves that look up what they would encode."""
    import tensorflow as tf

    from tf_smoothclir.index.dense_half import DenseHalf
    from tf_smoothclir.index.lexical_half import LexicalHalf, LexicalRows

    made = vectors(documents, dim, seed=1)
    halves: list = [
        DenseHalf(
            lambda text: {"vector": tf.constant(made[text.numpy().astype(int)])},
            dim,
            kind,
        )
    ]
    if words:
        impacts = words_of(documents, _WORDS_PER_DOCUMENT, seed=3)

        class Lookup(LexicalHalf):
            def __init__(self):
                pass

            def encode(self, documents):
                own = impacts[[int(document.text) for document in documents]]
                return LexicalRows(own, own, np.ones(len(documents), int))

        halves.append(Lookup())
    return halves


def _export(dim: int) -> ExportManifest:
    thresholds = (0.2, 0.7)
    cut_points = CutPoints(thresholds, ())
    shared = {"thresholds": thresholds, "data": DataSettings(), "cut_points": cut_points}
    own = {"role": "document", "version": 1, "pair_id": "benchmark", "parts": ROLES}
    return ExportManifest(dim=dim, epsilon=1.0, **shared, **own)


def on_disk(kind: str, documents: int, dim: int, queries: int) -> dict[str, float]:
    """Builds an index on disk, and times it."""
    from tf_smoothclir.index.builder import build_index
    from tf_smoothclir.index.document_index import DocumentIndex

    with tempfile.TemporaryDirectory() as directory:
        path, halves = Path(directory, "index"), _halves(kind, documents, dim, words=False)
        begin = time.perf_counter()
        build_index(path, _Numbers(documents), halves, _export(dim))
        written = documents / (time.perf_counter() - begin)
        index, asked = DocumentIndex(path), vectors(queries, dim, seed=2)
        found, times = _timed(lambda query: _ranked(index, asked[[query]]), queries)
    return {"documents/s written": written, **times, "recall@10": _recall(found, documents, dim)}


def _ranked(index, asked: np.ndarray) -> list:
    ((positions, scores),) = index.half("dense").rank(asked, _DEPTH)
    return index.hits(positions, scores, index.manifest.cut_points)


def in_milvus(uri: str, documents: int, dim: int, queries: int, *, words: bool) -> dict[str, float]:
    """Writes a collection into Milvus, and times it; the collection is deleted."""
    from tf_smoothclir.engines.milvus import Milvus
    from tf_smoothclir.engines.milvus_building import build_collection
    from tf_smoothclir.engines.milvus_collection import PartOfQuery, field_values
    from tf_smoothclir.index.lexical_half import LexicalRows

    asked = vectors(queries, dim, seed=2)
    sparse = words_of(queries, _WORDS_PER_QUERY, seed=4)
    with (
        tempfile.TemporaryDirectory() as directory,
        Milvus(uri or str(Path(directory, "milvus.db"))) as milvus,
    ):
        halves, begin = _halves("auto", documents, dim, words=words), time.perf_counter()
        target = build_collection(
            milvus,
            _NAME,
            _Numbers(documents),
            halves,
            _export(dim),
            overwrite=True,
        )
        written = documents / (time.perf_counter() - begin)

        def search(query):
            if not words:
                return target.search(asked[[query]], _DEPTH)[0]
            (own,) = field_values("lexical", LexicalRows(sparse[[query]], None, np.ones(1, int)))
            parts = [
                PartOfQuery("dense", asked[query], 1.0),
                PartOfQuery("lexical", own, _OF_WORDS),
            ]
            return target.search_sum(parts, _DEPTH)

        found, times = _timed(search, queries)
        with milvus.explained():
            milvus.client.drop_collection(_NAME)
    recall = _recall(found, documents, dim, words=words)
    return {"documents/s written": written, **times, "recall@10": recall}


def _timed(search: Callable[[int], list], queries: int) -> tuple[list[list], dict[str, float]]:
    """The hits of each query, and the median and the 99th percentile of the times."""
    for query in range(min(_WARM_UP, queries)):
        search(query)
    found, times = [], []
    for query in range(queries):
        begin = time.perf_counter()
        found.append(search(query))
        times.append(1000 * (time.perf_counter() - begin))
    return found, {"p50 ms": float(np.median(times)), "p99 ms": float(np.percentile(times, 99))}


def _recall(found: list[list], documents: int, dim: int, *, words: bool = False) -> float:
    """The share of hits that are among the exact best."""
    made, asked = vectors(documents, dim, seed=1), vectors(len(found), dim, seed=2)
    impacts = words_of(documents, _WORDS_PER_DOCUMENT, seed=3) if words else None
    sparse = words_of(len(found), _WORDS_PER_QUERY, seed=4)
    good = 0
    for number, hits in enumerate(found):
        scores = made @ asked[number]
        if impacts is not None:
            scores += _OF_WORDS * (impacts @ sparse[[number]].toarray()[0])
        least = np.partition(scores, -_DEPTH)[-_DEPTH]
        good += sum(scores[int(hit.id)] >= least - 1e-5 for hit in hits)
    return good / (_DEPTH * len(found))


def measure(
    *,
    documents: int,
    dim: int,
    queries: int,
    rounds: int,
    uri: str,
    words: bool,
    run_dir: str = "",
) -> list[dict]:
    """A table."""
    if run_dir:
        return candidates(run_dir, queries)
    sizes = (documents, dim, queries)
    rivals = {
        FLAT: partial(on_disk, "flat", *sizes),
        HNSW: partial(on_disk, "hnsw", *sizes),
        MILVUS: partial(in_milvus, uri, *sizes, words=False),
    }
    if words:
        rivals[MILVUS_WORDS] = partial(in_milvus, uri, *sizes, words=True)
    measurements = common.interleaved(rivals, rounds)
    title = f"{documents:,} documents of {dim} dimensions, Milvus at {uri or 'a file (Lite)'}"
    return [common.table(title, measurements, ratio_of="p50 ms", references=[FLAT])]


def candidates(run_dir: str, queries: int) -> list[dict]:
    """A table of what few candidates of each half find, for a hybrid run."""
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.training.run_data import tokenized_set_of
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.run_models import load_models

    run = RunDirectory.load(run_dir)
    models, settings = load_models(run), run.settings()
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, ("test",))
    rows = tokenized_set.retrieval_set.queries_in("test")
    rows = np.sort(np.random.default_rng(0).permutation(rows)[:queries])
    retrievers = models.retrievers(tokenized_set)
    of_words, of_vectors = models["hybrid"].weights
    lexical = of_words * retrievers["lexical"].rows(rows)
    dense = np.zeros_like(lexical)
    begin = 0
    for found in retrievers["dense"].rank(rows, lexical.shape[1]):
        part = dense[begin : begin + len(found.query_rows)]
        np.put_along_axis(part, found.document_rows, of_vectors * found.scores, axis=1)
        begin += len(part)
    measured = {
        f"{count} candidates": [_found_by(lexical, dense, count)] for count in (100, 300, 1000)
    }
    title = f"{len(rows)} queries, {lexical.shape[1]:,} documents"
    return [common.table(title, measured, ratio_of="recall@10", references=[])]


def _found_by(lexical: np.ndarray, dense: np.ndarray, count: int) -> dict[str, float]:
    """Adds up the best `count` scores of each query, `[queries, documents]` on either side.

    A document that is a candidate of neither side is not found, however its score compares.
    """
    exact, sums = lexical + dense, np.full(lexical.shape, -np.inf)
    count = min(count, lexical.shape[1])
    for scores in (lexical, dense):
        best = np.argpartition(-scores, count - 1, axis=1)[:, :count]
        before = np.take_along_axis(sums, best, axis=1)
        before = np.where(np.isfinite(before), before, 0)
        np.put_along_axis(sums, best, before + np.take_along_axis(scores, best, axis=1), axis=1)
    first = np.argsort(-sums, axis=1)[:, :_DEPTH]
    is_found = np.isfinite(np.take_along_axis(sums, first, axis=1))
    reached = np.where(is_found, np.take_along_axis(exact, first, axis=1), -np.inf)
    least = np.partition(exact, -_DEPTH, axis=1)[:, [-_DEPTH]]
    return {
        "recall@10": float((reached >= least - 1e-5).mean()),
        "same first": float((reached[:, 0] >= exact.max(axis=1) - 1e-5).mean()),
    }


def _define_flags() -> None:
    flags.DEFINE_integer("documents", 20_000, "Size of the collection.", lower_bound=_DEPTH)
    flags.DEFINE_integer("dim", 64, "Dimension of the vectors.", lower_bound=1)
    flags.DEFINE_integer("queries", 200, "Number of queries.", lower_bound=1)
    flags.DEFINE_string("uri", "", "Address of Milvus; empty: Milvus Lite in a temporary file.")
    flags.DEFINE_boolean("words", False, "Measure vectors and words together, too.")
    flags.DEFINE_string("run_dir", "", "A hybrid run: show what few candidates of it find.")


if __name__ == "__main__":
    common.run(_define_flags, measure)
