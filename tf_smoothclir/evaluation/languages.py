"""Figures by language: of the one ranking of all, and of the documents of each language in it."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.metrics import DEPTH, collection_metrics, grades_by_query
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
        ideal = grades_by_query(queries[own], grades[own], len(ranked))
        # What is of other languages leaves the ranking; the others keep their order.
        kept = np.isin(there, languages)
        closed = np.argsort(~kept, axis=1, kind="stable")
        graded = np.where(kept, ranked, 0)
        closed_up, highest = (
            np.take_along_axis(graded, closed, axis=1),
            retrieval_set.num_grades - 1,
        )
        per_query = collection_metrics(closed_up, ideal, highest, cut=_CUT)
        number = (ideal > 0).sum(axis=1)
        of_relevant = (closed_up > 0).sum(axis=1) / np.where(number > 0, number, np.nan)
        per_query = {name: per_query[name] for name in ("MRR@10", f"nDCG@{_CUT}", "MAP")}
        per_query[f"Recall@{DEPTH}"] = of_relevant
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
