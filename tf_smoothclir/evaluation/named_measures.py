"""Any measure of `ir_measures`, by its name, such as nDCG@20, RR or Success(rel=2)@1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.utils.errors import input_error


def named_measures(
    names: Sequence[str],
    run: Mapping[str, Mapping[str, float]],
    qrels: Mapping[str, Mapping[str, int]],
    query_ids: Sequence[str],
) -> dict[str, np.ndarray]:
    """The measures of queries, `[queries]` float64; NaN for one without a relevant document.

    Args:
        run: Query -> document -> score; equal scores are ordered by the hash of the id.
        qrels: Query -> document -> grade.
        query_ids: Of the queries that are measured.
    """
    if not names:
        return {}
    measures, found = _measures(names), {name: np.zeros(len(query_ids)) for name in names}
    places = {query: place for place, query in enumerate(query_ids)}
    ranked = {query: _by_rank(scores) for query, scores in run.items() if query in places}
    judged = {query: dict(qrels[query]) for query in query_ids if qrels[query]}
    import ir_measures

    for value in ir_measures.iter_calc(list(measures.values()), judged, ranked):
        for name, measure in measures.items():
            if measure == value.measure:
                found[name][places[value.query_id]] = value.value
    has_none = [max(qrels[query].values(), default=0) < 1 for query in query_ids]
    return {name: np.where(has_none, np.nan, values) for name, values in found.items()}


def _measures(names: Sequence[str]) -> dict:
    try:
        import ir_measures
    except ImportError:
        reason = "these measures come from ir_measures, which is not installed"
        remedy = "pip install ir-measures"
        raise input_error(f"--measures={','.join(names)}", reason, remedy) from None
    found = {}
    for name in names:
        try:
            found[name] = ir_measures.parse_measure(name)
        except Exception as error:  # of several kinds, by its parser
            reason, remedy = "ir_measures has no such measure", "Give names such as nDCG@10,RR,P@5"
            raise input_error(f"--measures={name}", reason, remedy) from error
    return found


def _by_rank(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores of the same order without ties, which other tools break by the id."""
    documents = list(scores)
    order = np.lexsort((hash_ids(documents), -np.array(list(scores.values()), np.float64)))
    return {documents[place]: float(-rank) for rank, place in enumerate(order)}
