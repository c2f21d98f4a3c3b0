"""Inverse document frequencies of the tokens of a tokenized set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tf_smoothclir.data.ragged_store import RaggedStore
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

_TEXTS_PER_CHUNK = 1 << 14


def inverse_document_frequency(
    tokenized_set: TokenizedSet, roles: Sequence[str], vocabulary_size: int
) -> np.ndarray:
    """Ln(1 + N / n) for each token, which n of N texts contain.

    The texts are the documents and the training queries. A token without a text counts as if it had
    one, and so does "unknown": its words are as rare as any.

    Returns:
        `[vocabulary_size]` float64, all above 0.
    """
    texts, having = 0, np.zeros(vocabulary_size, np.int64)
    for role in roles:
        store = tokenized_set.tokens(role)
        counted = np.ones(len(store), bool)
        if role == "query":
            counted = tokenized_set.retrieval_set.splits == SPLITS.index("train")
        texts += int(counted.sum())
        having += _texts_with(store, counted, vocabulary_size)
    having[UNKNOWN_ID] = 1
    return np.log1p(texts / np.maximum(having, 1))


def _texts_with(store: RaggedStore, counted: np.ndarray, size: int) -> np.ndarray:
    """`[size]`, the number of `counted` rows that contain each value."""
    found = np.zeros(size, np.int64)
    for begin in range(0, len(store), _TEXTS_PER_CHUNK):
        rows = np.arange(begin, min(begin + _TEXTS_PER_CHUNK, len(store)))
        lengths = np.where(counted[rows], store.lengths[rows], 0)
        values = [store[row] for row in rows[lengths > 0]]
        if values:
            ids = np.concatenate(values)
            ids[ids >= size] = UNKNOWN_ID  # words outside the vocabulary, which have n-grams only
            pairs = np.repeat(rows, lengths) * size + ids
            found += np.bincount(np.unique(pairs) % size, minlength=size)
    return found
