"""Evaluation: seconds for the seven metrics, compared with other libraries; full retrieval.

python -m benchmarks.evaluation
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from absl import flags

from benchmarks import common
from tf_smoothclir.settings.training import METRICS

PACKAGE, NUMPY = "tf_smoothclir", "NumPy"
IR_MEASURES, TFR = "ir-measures", "tensorflow-ranking"
_MATES, _LINKED = 1, 13  # documents of grade 2 and 1 in each list
_REPEATS = 5


def judged_scores(queries: int, documents: int) -> tuple[np.ndarray, np.ndarray]:
    """Random scores without ties, and grades: `[queries, documents]` each."""
    generator = np.random.default_rng(13)
    grades = np.zeros((queries, documents), np.int32)
    grades[:, :_MATES] = 2
    grades[:, _MATES : _MATES + _LINKED] = 1
    places = np.tile(np.linspace(-1, 1, documents, dtype=np.float32), (queries, 1))
    return generator.permuted(places, axis=1), grades


def package(queries: int, documents: int) -> dict[str, float]:
    """Times `ranked_grades`, `per_query_metrics` and `mean_metrics`."""
    from tf_smoothclir.evaluation.metrics import mean_metrics, per_query_metrics, ranked_grades

    scores, grades = judged_scores(queries, documents)
    offsets = np.arange(queries + 1) * documents
    ties = np.arange(scores.size)

    def evaluate():
        ranked = ranked_grades(scores.ravel(), grades.ravel(), offsets, ties)
        return mean_metrics(per_query_metrics(ranked, 3))

    return _timed(evaluate)


def ir_measures(queries: int, documents: int) -> dict[str, float]:
    """Times `calc_aggregate` on dictionaries made beforehand."""
    import ir_measures as ir

    scores, grades = judged_scores(queries, documents)
    ids = [f"d{document}" for document in range(documents)]
    run, qrels = (
        {f"q{query}": dict(zip(ids, row)) for query, row in enumerate(array.tolist())}
        for array in (scores, grades)
    )
    measures = {
        "P_mr@1": ir.Success(rel=2) @ 1,
        "P_mr@5": ir.Success(rel=2) @ 5,
        "P_r@5": ir.P(rel=1) @ 5,
        "NDCG@5": ir.nDCG @ 5,
        "MAP": ir.AP(rel=1),
        "MRR_mr": ir.RR(rel=2),
        "MRR_r": ir.RR(rel=1),
    }

    def evaluate():
        values = ir.calc_aggregate(measures.values(), qrels, run)
        return {name: values[measure] for name, measure in measures.items()}

    return _timed(evaluate)


def ranking_metrics(queries: int, documents: int) -> dict[str, float]:
    """Times the Keras metrics of tensorflow-ranking; P_mr@5 is five times a precision."""
    import tensorflow as tf
    import tensorflow_ranking as tfr

    scores, grades = map(tf.constant, judged_scores(queries, documents))
    labels = {
        "r": tf.cast(grades, tf.float32),
        "mr": tf.cast(grades == 2, tf.float32),
    }
    metrics = {
        "P_mr@1": ("mr", 1, tfr.keras.metrics.PrecisionMetric(topn=1)),
        "P_mr@5": ("mr", 5, tfr.keras.metrics.PrecisionMetric(topn=5)),
        "P_r@5": ("r", 1, tfr.keras.metrics.PrecisionMetric(topn=5)),
        "NDCG@5": ("r", 1, tfr.keras.metrics.NDCGMetric(topn=5, gain_fn=tf.identity)),
        "MAP": ("r", 1, tfr.keras.metrics.MeanAveragePrecisionMetric()),
        "MRR_mr": ("mr", 1, tfr.keras.metrics.MRRMetric()),
        "MRR_r": ("r", 1, tfr.keras.metrics.MRRMetric()),
    }

    @tf.function
    def update():
        for kind, _, metric in metrics.values():
            metric.update_state(labels[kind], scores)

    def evaluate():
        for _, _, metric in metrics.values():
            metric.reset_state()
        update()
        return {name: factor * float(m.result()) for name, (_, factor, m) in metrics.items()}

    return _timed(evaluate)


def retrieval(queries: int, collection: int, dim: int, depth: int) -> dict[str, float]:
    """Times `DenseRetriever.rank`."""
    from tf_smoothclir.two_tower.scorer import DenseRetriever

    retriever = DenseRetriever(*_vectors(queries, collection, dim), np.arange(collection))
    rows = np.arange(queries)
    return _queries_per_second(lambda: list(retriever.rank(rows, depth)), queries)


def numpy_retrieval(queries: int, collection: int, dim: int, depth: int) -> dict[str, float]:
    """Times plain NumPy: all scores at once, `argpartition`, then sorting the rest."""
    vectors, documents = _vectors(queries, collection, dim)

    def search():
        scores = vectors @ documents.T
        best = np.argpartition(scores, -depth, axis=1)[:, -depth:]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1)
        return np.take_along_axis(best, order, axis=1)

    return _queries_per_second(search, queries)


def measure(*, queries: int, documents: int, collection: int, rounds: int) -> list[dict]:
    """Two tables: the seven metrics, and full retrieval."""
    rivals = {PACKAGE: package}
    if common.has("tensorflow_ranking"):
        rivals[TFR] = ranking_metrics
    if common.has("ir_measures"):
        rivals[IR_MEASURES] = ir_measures
    rivals = {name: partial(rival, queries, documents) for name, rival in rivals.items()}
    sizes = (max(1, queries // 10), collection, 64, min(100, collection))
    searches = {PACKAGE: partial(retrieval, *sizes), NUMPY: partial(numpy_retrieval, *sizes)}
    return [
        common.table(
            f"Seven metrics, {queries:,} queries x {documents} documents",
            _with_differences(common.interleaved(rivals, rounds)),
            ratio_of="s",
            references=[PACKAGE],
        ),
        common.table(
            f"Full retrieval, {sizes[0]:,} queries, {collection:,} documents, {sizes[3]} deep",
            common.interleaved(searches, rounds),
            ratio_of="queries/s",
            references=[NUMPY],
        ),
    ]


def _with_differences(measurements: Mapping[str, list[dict]]) -> dict[str, list[dict]]:
    """Replaces the metrics by their largest difference from the package's metrics."""
    ours = measurements[PACKAGE][0]
    return {
        name: [
            {
                "s": r["s"],
                "largest difference": max(abs(r[metric] - ours[metric]) for metric in METRICS),
                "MB": r["MB"],
                "load": r["load"],
            }
            for r in rounds
        ]
        for name, rounds in measurements.items()
    }


def _vectors(queries: int, collection: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(13)
    return tuple(
        generator.standard_normal((rows, dim), np.float32) / (2 * dim**0.5)
        for rows in (queries, collection)
    )


def _timed(evaluate: Callable[[], dict[str, float]]) -> dict[str, float]:
    """The median time of some calls after a first one, and the metrics to compare."""
    return {"s": _seconds(evaluate), **evaluate()}


def _queries_per_second(search: Callable[[], object], queries: int) -> dict[str, float]:
    return {"queries/s": queries / _seconds(search)}


def _seconds(call: Callable[[], object]) -> float:
    call()
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def _define_flags() -> None:
    flags.DEFINE_integer(
        "queries", 5000, "Candidate lists; full retrieval has a tenth.", lower_bound=1
    )
    flags.DEFINE_integer("documents", 55, "Documents in each candidate list.", lower_bound=14)
    flags.DEFINE_integer("collection", 100_000, "Documents of full retrieval.", lower_bound=1)


if __name__ == "__main__":
    common.run(_define_flags, measure)
