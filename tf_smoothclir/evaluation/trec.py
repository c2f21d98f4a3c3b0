"""Run and qrels files, as trec_eval and ir-measures read them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.encoding import EncodedSet
from tf_smoothclir.evaluation.full_retrieval import TopDocuments
from tf_smoothclir.utils.files import write_text


def write_list_run(
    path: str | os.PathLike,
    retrieval_set: RetrievalSet,
    encoded: EncodedSet,
    lists: CandidateLists,
    scores: np.ndarray,
    tag: str,
) -> None:
    """Writes the candidate lists in the order of their scores.

    Args:
        path: File to write.
        retrieval_set: For the ids.
        encoded: For the tie rule.
        lists: `[pairs]` documents.
        scores: `[pairs]` float32.
        tag: Name of the system.
    """
    number = np.repeat(np.arange(len(lists.query_rows)), np.diff(lists.offsets))
    order = np.lexsort((encoded.tie_order[lists.document_rows], -scores, number))
    documents, scores = lists.document_rows[order], scores[order]
    bounds = zip(lists.offsets[:-1], lists.offsets[1:])
    rankings = ((documents[b:e], scores[b:e]) for b, e in bounds)
    _write_run(path, retrieval_set, lists.query_rows, rankings, tag)


def write_top_run(
    path: str | os.PathLike, retrieval_set: RetrievalSet, top: TopDocuments, tag: str
) -> None:
    """Writes the best documents of the whole collection."""
    _write_run(path, retrieval_set, top.query_rows, zip(top.document_rows, top.scores), tag)


def write_list_qrels(
    path: str | os.PathLike, retrieval_set: RetrievalSet, lists: CandidateLists
) -> None:
    """Writes the grades of candidate lists, the sampled documents as 0."""
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


def _write_run(
    path: str | os.PathLike,
    retrieval_set: RetrievalSet,
    query_rows: Sequence[int],
    rankings: Iterable[tuple[np.ndarray, np.ndarray]],
    tag: str,
) -> None:
    lines = []
    for query, (documents, scores) in zip(query_rows, rankings):
        ranked = zip(documents, _strictly_falling(scores))
        for rank, (document, score) in enumerate(ranked, start=1):
            document_id = retrieval_set.document_ids[document]
            lines.append(
                f"{retrieval_set.query_ids[query]} Q0 {document_id} {rank} {score:.9g} {tag}\n"
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
