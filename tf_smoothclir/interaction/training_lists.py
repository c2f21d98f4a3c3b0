"""The documents of training queries that a re-ranker learns from."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.protocols.scorer import Retriever

_NEGATIVE_RANKS = 10
_MOST_QUERIES = 8000
_MOST_RELATED, _RANDOM = 5, 10


def training_lists(
    retrieval_set: RetrievalSet, first_stage: Retriever, seed: int
) -> CandidateLists:
    """Training queries with their best documents and others that the first stage finds."""
    rows, grades = retrieval_set.query_rows, retrieval_set.grades
    of_training = (retrieval_set.splits[rows] == 0) & (grades > 0)
    if not of_training.any():
        return _lists([], [])
    wanted = np.flatnonzero(of_training & (grades == grades[of_training].max()))
    queries = np.unique(rows[wanted])
    hashes = hash_ids([retrieval_set.query_ids[row] for row in queries], f"rerank {seed}")
    queries = np.sort(queries[np.argsort(hashes, kind="stable")[:_MOST_QUERIES]])
    highest, found = int(grades[wanted[0]]), ([], [])
    for ranking in first_stage.rank(queries, _NEGATIVE_RANKS):
        for row, documents in zip(ranking.query_rows, ranking.document_rows):
            own = slice(*np.searchsorted(rows, [row, row + 1]))
            mates = retrieval_set.document_rows[own][grades[own] == highest]
            others = documents[~np.isin(documents, retrieval_set.document_rows[own])]
            found[0].append(row)
            found[1].append((mates, others))
    return _lists(*found, grade=highest)


def _lists(queries, documents, grade: int = 0) -> CandidateLists:
    lengths = [len(mates) + len(others) for mates, others in documents]
    none = [np.zeros(0, np.int32)]
    return CandidateLists(
        query_rows=np.array(queries, np.int32),
        offsets=np.cumsum([0, *lengths]).astype(np.int64),
        document_rows=np.concatenate(none + [one for both in documents for one in both]).astype(
            np.int32
        ),
        grades=np.concatenate(
            none + [np.repeat([grade, 0], [len(mates), len(others)]) for mates, others in documents]
        ).astype(np.int32),
    )


def with_related(lists: CandidateLists, retrieval_set: RetrievalSet, seed: int) -> CandidateLists:
    """The lists, and after them one of related documents for each query that has any."""
    generator = np.random.default_rng(seed)
    highest = int(lists.grades.max())
    rows, documents = [], []
    for row in lists.query_rows:
        own = slice(*np.searchsorted(retrieval_set.query_rows, [row, row + 1]))
        judged, grades = retrieval_set.document_rows[own], retrieval_set.grades[own]
        related = generator.permutation(judged[(grades > 0) & (grades < highest)])[:_MOST_RELATED]
        drawn = np.unique(generator.integers(0, len(retrieval_set.document_ids), _RANDOM))
        drawn = drawn[~np.isin(drawn, judged)]
        if len(related) and len(drawn):
            rows.append(row)
            documents.append((related, drawn))
    more = _lists(rows, documents, grade=highest)
    return CandidateLists(
        query_rows=np.concatenate([lists.query_rows, more.query_rows]),
        offsets=np.concatenate([lists.offsets, lists.offsets[-1] + more.offsets[1:]]),
        document_rows=np.concatenate([lists.document_rows, more.document_rows]),
        grades=np.concatenate([lists.grades, more.grades]),
    )
