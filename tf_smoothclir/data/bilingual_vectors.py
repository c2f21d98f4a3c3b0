"""Word vectors of two languages in one space, made of the judged pairs alone.

Random indexing of parallel texts (Sahlgren and Karlgren 2005): words that stand in the same pairs
get similar vectors, whichever side they stand on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tf_smoothclir.data.judged_lists import JudgedLists, judged_lists
from tf_smoothclir.data.prepared import PreparedSet
from tf_smoothclir.data.ragged_store import RaggedStore
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

_LISTS_PER_CHUNK = 1 << 11


def bilingual_vectors(
    prepared: PreparedSet, roles: Sequence[str], *, size: int, dim: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns a vector for each token that stands in a training pair of the highest grade.

    Each training query has a random vector, drawn from N(0, 1) and centred over all queries; a
    query and its documents of the highest grade are where it counts. A token has the sum over
    where it stands, divided by the root of their number n: entries of variance 1 - n / N for N
    queries, so that a token that stands everywhere says nothing. The inner product of two vectors,
    divided by `dim`, estimates the correlation (φ) of standing in the same places.

    Args:
        prepared: The set.
        roles: Whose tokens: "query", "document", or both where they share a vocabulary.
        size: Of the vocabulary; tokens behind it and unknown ones are left out.
        dim: Length of the vectors.
        seed: Of the random vectors; the same for both languages.

    Returns:
        `(vectors [size, dim] float32, found [size] bool)`; a token that is not found has zeros.
    """
    stores = {role: prepared.tokens(role) for role in roles}
    best = prepared.retrieval_set.num_grades - 1
    lists = judged_lists(prepared.retrieval_set, "train", negatives=0, seed=seed)
    number = len(lists.query_rows)
    random = np.random.default_rng(seed).standard_normal((number, dim), np.float32)
    random -= random.mean(axis=0)
    sums, counts = np.zeros((size, dim), np.float32), np.zeros(size, np.int64)
    for begin in range(0, number, _LISTS_PER_CHUNK):
        chunk = range(begin, min(begin + _LISTS_PER_CHUNK, number))
        keys = [
            tokens.astype(np.int64) * number + place
            for place in chunk
            for role in roles
            for tokens in _tokens_in(stores[role], _rows(lists, place, role, best), size)
        ]
        if not keys:
            continue
        tokens, places = np.divmod(np.unique(np.concatenate(keys)), number)
        distinct, starts, times = np.unique(tokens, return_index=True, return_counts=True)
        sums[distinct] += np.add.reduceat(random[places], starts, axis=0)
        counts[distinct] += times
    sums /= np.sqrt(np.maximum(counts, 1))[:, np.newaxis]
    return sums, counts > 0


def _rows(lists: JudgedLists, place: int, role: str, best: int) -> np.ndarray:
    """Returns the query of a list, or its documents of the grade `best`."""
    if role == "query":
        return lists.query_rows[place : place + 1]
    pairs = slice(lists.offsets[place], lists.offsets[place + 1])
    return lists.document_rows[pairs][lists.grades[pairs] == best]


def _tokens_in(store: RaggedStore, rows: np.ndarray, size: int) -> Iterator[np.ndarray]:
    """Yields the tokens of each row that the vocabulary knows."""
    for row in rows:
        tokens = store[row]
        yield tokens[(tokens > UNKNOWN_ID) & (tokens < size)]
