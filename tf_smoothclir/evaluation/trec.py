"""Run and qrels files, as trec_eval and ir-measures read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.storage.files import write_text

_TAG = "tf_smoothclir"  # of the system


def write_list_run(
    path: str | os.PathLike,
    retrieval_set: RetrievalSet,
    lists: CandidateLists,
    scores: np.ndarray,
) -> None:
    """Writes candidate lists in the order of their `[pairs]` scores."""
    number = np.repeat(np.arange(len(lists.query_rows)), np.diff(lists.offsets))
    order = np.lexsort((retrieval_set.tie_order[lists.document_rows], -scores, number))
    bounds = lists.offsets[1:-1]
    ranked = (np.split(values[order], bounds) for values in (lists.document_rows, scores))
    _write_rows(path, retrieval_set, lists.query_rows, *ranked)


def write_ranking(path: str | os.PathLike, retrieval_set: RetrievalSet, ranking: Ranking) -> None:
    """Writes a ranking of the whole collection."""
    rows = ranking.query_rows, ranking.document_rows, ranking.scores
    _write_rows(path, retrieval_set, *rows)


def _write_rows(path, retrieval_set, query_rows, document_rows, scores) -> None:
    query_ids, document_ids = retrieval_set.query_ids, retrieval_set.document_ids
    rankings = (
        (query_ids[query], [document_ids[row] for row in rows], values)
        for query, rows, values in zip(query_rows, document_rows, scores)
    )
    write_run(path, rankings)


def write_run(
    path: str | os.PathLike,
    rankings: Iterable[tuple[str, Sequence[str], Sequence[float]]],
) -> None:
    """Writes rankings of any system, all of them or, after an error, none."""
    lines = []
    for query_id, document_ids, scores in rankings:
        ranked = zip(document_ids, _strictly_falling(scores))
        for rank, (document_id, score) in enumerate(ranked, start=1):
            lines.append(f"{query_id} Q0 {document_id} {rank} {score:.9g} {_TAG}\n")
    write_text(path, "".join(lines))


def write_per_query(
    path: str | os.PathLike, query_ids: Sequence[str], per_query: Mapping[str, np.ndarray]
) -> None:
    """Writes a table of the metrics of each query, `[queries]`; empty where it has none."""
    rows = zip(query_ids, *(values.tolist() for values in per_query.values()))
    lines = [
        "\t".join([query, *("" if value != value else f"{value:.6g}" for value in values)])
        for query, *values in rows
    ]
    write_text(path, "\n".join(["\t".join(["query_id", *per_query]), *lines, ""]))


def write_list_qrels(
    path: str | os.PathLike, retrieval_set: RetrievalSet, lists: CandidateLists
) -> None:
    """Writes the grades of candidate lists; sampled documents have grade 0."""
    _write_qrels(path, retrieval_set, lists.pair_query_rows, lists.document_rows, lists.grades)


def write_qrels(
    path: str | os.PathLike, retrieval_set: RetrievalSet, query_rows: np.ndarray
) -> None:
    """Writes the judgments of some queries."""
    kept = np.isin(retrieval_set.query_rows, query_rows)
    parts = (retrieval_set.query_rows, retrieval_set.document_rows, retrieval_set.grades)
    _write_qrels(path, retrieval_set, *(part[kept] for part in parts))


def _write_qrels(path, retrieval_set, queries, documents, grades) -> None:
    query_ids, document_ids = retrieval_set.query_ids, retrieval_set.document_ids
    lines = (
        f"{query_ids[query]} 0 {document_ids[document]} {grade}\n"
        for query, document, grade in zip(queries, documents, grades)
    )
    write_text(path, "".join(lines))


def _strictly_falling(scores: np.ndarray) -> np.ndarray:
    """Lowers equal float32 scores by the least step: other tools sort by score alone."""
    scores = np.array(scores, np.float32)
    if (np.diff(scores) < 0).all():
        return scores
    for i in range(1, len(scores)):
        if scores[i] >= scores[i - 1]:
            scores[i] = np.nextafter(scores[i - 1], np.float32(-np.inf))
    return scores
