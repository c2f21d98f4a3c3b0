"""Measures of `ir_measures` by their names, such as nDCG@20, RR or Success(rel=2)@1."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence

import ir_measures
import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.utils.errors import input_error


def named_measures(
    names: Mapping[str, str],
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    query_ids: Sequence[str],
) -> dict[str, np.ndarray]:
    """Measures queries: by each key of `names`, `[queries]` float64.

    NaN stands for a query without a document that is relevant for the measure; queries that the run
    lacks have 0.

    Args:
        names: Name of a measure for us -> for `ir_measures`.
        run: Query -> document -> score; equal scores are ordered by the hash of the id.
        qrels: Query -> document -> grade.
        query_ids: Of the queries that are measured.
    """
    ours, found = collections.defaultdict(list), {}
    best = np.array([max(qrels[query].values(), default=0) for query in query_ids])
    for name, theirs in names.items():
        measure = _parsed(theirs)
        ours[measure].append(name)
        found[name] = np.where(best < measure.params.get("rel", 1), np.nan, 0.0)
    if not names or not best.any():
        return found
    places = {query: place for place, query in enumerate(query_ids)}
    judged = {query: dict(qrels[query]) for query in query_ids if qrels[query]}
    ranked = {query: _by_rank(scores) for query, scores in run.items() if query in judged}
    for value in ir_measures.iter_calc(list(ours), judged, ranked):
        for name in ours[value.measure]:
            found[name][places[value.query_id]] += value.value  # NaN stays
    return found


def _parsed(name: str) -> ir_measures.Measure:
    try:
        return ir_measures.parse_measure(name)
    except Exception as error:  # of several kinds, by its parser
        reason, remedy = (
            "ir_measures has no such measure",
            "Give names such as nDCG@10,RR",
        )
        raise input_error(f"--measures={name}", reason, remedy) from error


def _by_rank(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores of the same order without ties, which other tools break by the id."""
    documents = list(scores)
    order = np.lexsort((hash_ids(documents), -np.array(list(scores.values()), np.float64)))
    return {documents[place]: float(-rank) for rank, place in enumerate(order)}
