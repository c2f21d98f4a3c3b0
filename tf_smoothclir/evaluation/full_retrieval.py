"""Metrics of full retrieval: every query against the whole collection."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.protocols.scorer import Ranking

DEPTH = 100  # documents per query that are ranked and measured


def retrieval_metrics(retrieval_set: RetrievalSet, ranking: Ranking) -> dict[str, np.ndarray]:
    """MRR and recall of the highest grade, `[queries]` float64; NaN for a query without one."""
    highest = retrieval_set.num_grades - 1
    found = ranking.grades(retrieval_set) == highest
    mates = retrieval_set.query_rows[retrieval_set.grades == highest]
    number = np.bincount(mates, minlength=len(retrieval_set.query_ids))[ranking.query_rows]
    number = np.where(number > 0, number, np.nan)
    first = np.where(found[:, :10].any(axis=1), found[:, :10].argmax(axis=1) + 1.0, np.inf)
    values = {"MRR@10": np.where(np.isnan(number), np.nan, 1.0 / first)}
    for depth in (1, 10, 100):
        values[f"Recall@{depth}"] = found[:, :depth].sum(axis=1) / number
    return {f"full/{name}": value for name, value in values.items()}
