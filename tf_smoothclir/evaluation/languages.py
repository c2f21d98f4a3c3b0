"""Figures by language: of the one ranking of all, and of the documents of each language in it."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.metrics import DEPTH
from tf_smoothclir.protocols.scorer import Ranking

LANGUAGES = (
    f"all: the first {DEPTH} documents of the ranking of all languages; a document language: those"
    " of them that are in it, as if there were no others; a query language: its queries alone."
    " MRR@10: the highest grade; MAP, Recall@100: grade 1 or more; nDCG@20: the gain is the grade."
    " first ten: the share of a language in the first ten places; relevant: its share of the"
    " documents of grade 1 or more"
)
_FIRST, _CUT = 10, 20


def language_figures(retrieval_set: RetrievalSet, ranking: Ranking) -> dict[str, dict[str, float]]:
    """Row of a table -> column -> figure; rows are "all" and each language of several.

    Returns:
        Nothing for a set of one language on either side.
    """
    of_documents, of_queries = retrieval_set.document_languages, retrieval_set.query_languages
    if max(len(of_documents.codes), len(of_queries.codes)) < 2:
        return {}
    judged = np.isin(retrieval_set.query_rows, ranking.query_rows)
    queries = np.searchsorted(ranking.query_rows, retrieval_set.query_rows[judged])
    documents, grades = retrieval_set.document_rows[judged], retrieval_set.grades[judged]
    ranked = ranking.grades(retrieval_set)
    there = of_documents.rows[ranking.document_rows]
    relevant = of_documents.rows[documents[grades > 0]]

    def figures(languages: np.ndarray, rows: np.ndarray) -> dict[str, float]:
        """Means over some queries of documents of some languages."""
        own = np.isin(of_documents.rows[documents], languages)
        ideal = np.zeros((len(ranked), np.bincount(queries, minlength=1).max()), np.int32)
        order = np.lexsort((-grades[own], queries[own]))
        of_query = queries[own][order]
        place = np.arange(len(of_query)) - np.searchsorted(of_query, of_query)
        ideal[of_query, place] = grades[own][order]
        # What is of other languages leaves the ranking; the others keep their order.
        kept = np.isin(there, languages)
        closed = np.argsort(~kept, axis=1, kind="stable")
        graded = np.where(kept, ranked, 0)
        per_query = _metrics(np.take_along_axis(graded, closed, axis=1), ideal, retrieval_set)
        means = {name: values[rows] for name, values in per_query.items()}
        known = np.isfinite(means["MAP"])
        return {"queries": int(known.sum())} | {
            name: float(np.nanmean(values)) if np.isfinite(values).any() else 0.0
            for name, values in means.items()
        }

    everything = np.arange(len(of_documents.codes)), np.arange(len(ranked))
    found = {"all": figures(*everything)}
    if len(of_documents.codes) > 1:
        for number, code in enumerate(of_documents.codes):
            found[f"documents {code or 'unknown'}"] = {
                **figures(np.array([number]), everything[1]),
                "first ten": float(np.mean(there[:, :_FIRST] == number)),
                "relevant": float(np.mean(relevant == number)),
            }
    if len(of_queries.codes) > 1:
        for number, code in enumerate(of_queries.codes):
            rows = np.flatnonzero(of_queries.rows[ranking.query_rows] == number)
            found[f"queries {code or 'unknown'}"] = figures(everything[0], rows)
    return found


def _metrics(
    ranked: np.ndarray, ideal: np.ndarray, retrieval_set: RetrievalSet
) -> dict[str, np.ndarray]:
    """Metric -> `[queries]` float64; NaN for a query without a relevant document.

    Args:
        ranked: `[queries, depth]` int, grades of a ranking.
        ideal: `[queries, most]` int, grades of all judged documents, the highest first.
    """
    highest = retrieval_set.num_grades - 1
    ranks = np.arange(1, ranked.shape[1] + 1)
    best, hits = ranked[:, :_FIRST] == highest, ranked > 0
    number = (ideal > 0).sum(axis=1)
    counted = np.where(number > 0, number, np.nan)
    first = np.where(best.any(axis=1), 1 / (best.argmax(axis=1) + 1.0), 0.0)
    precision = np.cumsum(hits, axis=1) / ranks
    gains, most = (
        (grades[:, :_CUT] / np.log2(1 + np.arange(1, grades[:, :_CUT].shape[1] + 1))).sum(axis=1)
        for grades in (ranked, ideal)
    )
    return {
        "MRR@10": np.where((ideal == highest).any(axis=1), first, np.nan),
        f"nDCG@{_CUT}": gains / np.where(most > 0, most, np.nan),
        "MAP": (precision * hits).sum(axis=1) / counted,
        f"Recall@{DEPTH}": hits.sum(axis=1) / counted,
    }
