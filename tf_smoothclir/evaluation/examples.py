"""Queries for people to look at: those that are ranked worst, and a sample of all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.evaluation.evaluate import Evaluation
from tf_smoothclir.utils.printing import markdown_table

_QUERIES, _CHARACTERS = 10, 100
_BY = "full/nDCG@10"


def examples(retrieval_set: RetrievalSet, evaluation: Evaluation) -> Iterator[tuple[str, str]]:
    """Yields heading and Markdown table: the worst queries by nDCG@10, and others; none of none."""
    values, hits = evaluation.per_query.get(_BY), evaluation.hits
    if values is None or hits is None or not np.isfinite(values).any():
        return
    measured = np.flatnonzero(np.isfinite(values))
    ids = [retrieval_set.query_ids[row] for row in hits.query_rows[measured]]
    by_chance = measured[np.argsort(hash_ids(ids, "examples"), kind="stable")]
    worst = by_chance[np.argsort(values[by_chance], kind="stable")][:_QUERIES]
    shown = {"The worst queries": worst, "Examples": by_chance[:_QUERIES]}
    chosen = np.unique(np.concatenate(list(shown.values())))
    wanted = {row: _best_document(retrieval_set, row) for row in hits.query_rows[chosen].tolist()}
    documents = {*wanted.values(), *hits.document_rows[chosen, 0].tolist()}
    queries = _texts(retrieval_set.source.queries(), wanted.keys())
    texts = _texts(retrieval_set.source.documents(), documents)
    for heading, places in shown.items():
        rows = []
        for place in places:
            query, first = int(hits.query_rows[place]), int(hits.document_rows[place, 0])
            is_right = hits.grades[place] == retrieval_set.num_grades - 1
            rank = str(int(is_right.argmax()) + 1) if is_right.any() else f"> {len(is_right)}"
            is_first = first == wanted[query]
            own = [texts[wanted[query]], rank, "the same" if is_first else texts[first]]
            rows.append([queries[query], *own, f"{values[place]:.2f}"])
        yield heading, markdown_table(["query", "wanted", "rank", "first hit", "nDCG@10"], rows)


def _best_document(retrieval_set: RetrievalSet, query: int) -> int:
    """The row of a document of the highest grade that the query has."""
    own = np.flatnonzero(retrieval_set.query_rows == query)
    return int(retrieval_set.document_rows[own[np.argmax(retrieval_set.grades[own])]])


def _texts(texts: Iterable[Text], rows: Iterable[int]) -> dict[int, str]:
    """Row -> the beginning of the text, after its title."""
    wanted, found = set(rows), {}
    for row, text in enumerate(texts):
        if row in wanted:
            whole = " ".join(f"{text.title}: {text.text}".removeprefix(": ").split())
            found[row] = whole[:_CHARACTERS] + "…" * (len(whole) > _CHARACTERS)
    return found
