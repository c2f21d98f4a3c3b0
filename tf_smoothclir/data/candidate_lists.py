"""Candidate lists: each query with its judged documents and sampled documents of grade 0."""

import dataclasses

import numpy as np

from tf_smoothclir.data.hashing import hash_ids, mix
from tf_smoothclir.data.retrieval_set import RetrievalSet


@dataclasses.dataclass(frozen=True)
class CandidateLists:
    """Candidate lists, one after the other: list `i` is `offsets[i]:offsets[i + 1]`."""

    query_rows: np.ndarray  # `[lists]` int32, the query of each list
    offsets: np.ndarray  # `[lists + 1]` int64
    document_rows: np.ndarray  # `[pairs]` int32
    grades: np.ndarray  # `[pairs]` int32

    @property
    def pair_query_rows(self) -> np.ndarray:
        """`[pairs]` int32, the query of each pair."""
        return np.repeat(self.query_rows, np.diff(self.offsets))


def candidate_lists(
    retrieval_set: RetrievalSet, split: str, *, negatives: int, seed: int, epoch: int = 0
) -> CandidateLists:
    """The candidate lists of a split; sampled documents are distinct and never judged."""
    # They depend on the seed, the epoch and the query's id alone. Where there are fewer than
    # `negatives`, all are taken.
    queries = retrieval_set.queries_in(split)
    begin = np.searchsorted(retrieval_set.query_rows, queries)
    end = np.searchsorted(retrieval_set.query_rows, queries, side="right")
    judged = np.concatenate([np.arange(b, e) for b, e in zip(begin, end)])
    sampled_list, sampled_document = _sample(retrieval_set, queries, negatives, seed, epoch)

    own_list = np.repeat(np.arange(len(queries)), end - begin)
    judged_pairs = retrieval_set.document_rows[judged], retrieval_set.grades[judged]
    return _flat(queries, own_list, *judged_pairs, sampled_list, sampled_document)


def with_documents(lists: CandidateLists, documents: np.ndarray) -> CandidateLists:
    """Further documents of grade 0 at the ends of the first lists: `[first, n]`, negative: none."""
    own_list = np.repeat(np.arange(len(lists.query_rows)), np.diff(lists.offsets))
    new_list, column = np.nonzero(documents >= 0)
    new = documents[new_list, column]
    is_new = ~np.isin(pair_key(new_list, new), pair_key(own_list, lists.document_rows))
    there = lists.document_rows, lists.grades
    return _flat(lists.query_rows, own_list, *there, new_list[is_new], new[is_new])


def _flat(queries, own_list, own_documents, own_grades, new_list, new_documents) -> CandidateLists:
    """Appends new documents of grade 0 to the own documents of each list."""
    list_of_pair = np.concatenate([own_list, new_list])
    order = np.argsort(list_of_pair, kind="stable")
    documents = np.concatenate([own_documents, new_documents])
    grades = np.concatenate([own_grades, np.zeros(len(new_list), np.int32)])
    lengths = np.bincount(list_of_pair, minlength=len(queries))
    return CandidateLists(
        query_rows=queries.astype(np.int32),
        offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        document_rows=documents[order].astype(np.int32),
        grades=grades[order].astype(np.int32),
    )


def _sample(retrieval_set, queries, negatives, seed, epoch) -> tuple[np.ndarray, np.ndarray]:
    """`[sampled]` list positions and `[sampled]` document rows."""
    num_documents = len(retrieval_set.document_ids)
    judged = np.sort(pair_key(retrieval_set.query_rows, retrieval_set.document_rows))
    ids = [retrieval_set.query_ids[query] for query in queries]
    streams = mix(hash_ids(ids, f"negatives {seed}") ^ mix(np.asarray(epoch)))
    lists, documents = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    todo, draws = np.arange(len(queries)), negatives + 8
    while todo.size:
        exhaustive = draws > 2 * num_documents
        if exhaustive:  # a permutation of the whole collection, which may have too few
            counter = np.arange(num_documents, dtype=np.uint64)
            drawn = np.argsort(mix(streams[todo, None] + counter), axis=1)
        else:
            counter = np.arange(draws, dtype=np.uint64)
            drawn = mix(streams[todo, None] + counter) % np.uint64(num_documents)
        fresh = _first_occurrence(drawn) & ~is_among(judged, pair_key(queries[todo, None], drawn))
        fresh &= np.cumsum(fresh, axis=1) <= negatives
        complete = exhaustive | (fresh.sum(axis=1) == negatives)
        keep = fresh & complete[:, None]
        lists.append(todo[np.nonzero(keep)[0]])
        documents.append(drawn[keep].astype(np.int64))
        todo, draws = todo[~complete], draws * 4
    return np.concatenate(lists), np.concatenate(documents)


def pair_key(queries: np.ndarray, documents: np.ndarray) -> np.ndarray:
    """An int64 key for each pair of a query row and a document row; shapes broadcast."""
    return (np.asarray(queries).astype(np.int64) << 32) | np.asarray(documents).astype(np.int64)


def is_among(ordered: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Whether each of `values`, any shape, is in `ordered`, `[n]` ascending."""
    position = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    return ordered[position] == values


def _first_occurrence(rows: np.ndarray) -> np.ndarray:
    """Marks the first occurrence of each value in its row of a `[lists, draws]` array."""
    order = np.argsort(rows, axis=1, kind="stable")
    ordered = np.take_along_axis(rows, order, axis=1)
    new = np.ones(rows.shape, bool)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    first = np.empty(rows.shape, bool)
    np.put_along_axis(first, order, new, axis=1)
    return first
