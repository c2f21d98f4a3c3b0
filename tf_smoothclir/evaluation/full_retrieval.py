"""Metrics of full retrieval: every query against the whole collection."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.protocols.scorer import Ranking

DEPTH = 100  # documents per query that are ranked and measured
COLLECTION_METRICS = ("nDCG@10", "MRR@10", "Recall@100", "MAP", "Recall@10", "Recall@1")


def retrieval_metrics(retrieval_set: RetrievalSet, ranking: Ranking) -> dict[str, np.ndarray]:
    """`collection_metrics` of a ranking, by `full/` and the name of each."""
    judged = np.isin(retrieval_set.query_rows, ranking.query_rows)
    queries = np.searchsorted(ranking.query_rows, retrieval_set.query_rows[judged])
    ideal = grades_by_query(queries, retrieval_set.grades[judged], len(ranking.query_rows))
    values = collection_metrics(ranking.grades(retrieval_set), ideal, retrieval_set.num_grades - 1)
    return {f"full/{name}": value for name, value in values.items()}


def grades_by_query(queries: np.ndarray, grades: np.ndarray, number: int) -> np.ndarray:
    """`[number, most]` int32: the grades of judgments by query, the highest first, then zeros."""
    found = np.zeros((number, np.bincount(queries, minlength=1).max()), np.int32)
    order = np.lexsort((-grades, queries))
    of_query = queries[order]
    found[of_query, np.arange(len(of_query)) - np.searchsorted(of_query, of_query)] = grades[order]
    return found


def collection_metrics(
    ranked: np.ndarray, ideal: np.ndarray, best: int, cut: int = 10
) -> dict[str, np.ndarray]:
    """Metrics of rankings of a collection, `[queries]` float64.

    NaN stands for a query without a document of the best grade, in nDCG and MAP of any grade from 1
    on.

    Args:
        ranked: `[queries, depth]` int, grades, the best score first; 0 where nobody judged.
        ideal: `[queries, most]` int, of all judged documents, the highest first.
        best: The highest grade of the set.
        cut: Of nDCG.
    """
    found, relevant = ranked == best, ranked > 0
    mates, all_relevant = (
        np.where(number > 0, number, np.nan)
        for number in ((ideal == best).sum(axis=1), (ideal > 0).sum(axis=1))
    )
    first = np.where(found[:, :10].any(axis=1), found[:, :10].argmax(axis=1) + 1.0, np.inf)
    precision = np.cumsum(relevant, axis=1) / np.arange(1, ranked.shape[1] + 1)
    gain, most = (
        (grades[:, :cut] / np.log2(np.arange(2, grades[:, :cut].shape[1] + 2))).sum(axis=1)
        for grades in (ranked, ideal)
    )
    return {
        f"nDCG@{cut}": gain / np.where(most > 0, most, np.nan),
        "MRR@10": np.where(np.isnan(mates), np.nan, 1.0 / first),
        "Recall@100": found[:, :100].sum(axis=1) / mates,
        "MAP": (precision * relevant).sum(axis=1) / all_relevant,
        "Recall@10": found[:, :10].sum(axis=1) / mates,
        "Recall@1": found[:, :1].sum(axis=1) / mates,
    }
