"""Queries in the language of the documents, word by word.

A translation is a matrix `[query words, document words]` whose rows sum to 1: a query becomes a bag
of weighted document words. Words that are not translated stay as they are spelled.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.sparse_tables import entry_rows, kept_entries, rows_of_1

_SIMILARITIES_AT_ONCE = 1 << 24


def literal(spelling: sp.csr_array) -> sp.csr_array:
    """The translation that leaves every word as it is, by `same_spelling`."""
    return sp.csr_array(spelling.T)


def by_table(table: sp.csr_array, spelling: sp.csr_array, most: int) -> sp.csr_array:
    """The best translations of each word by P(t | w), `[query words, document words]`."""
    order = np.lexsort((-table.data, entry_rows(table)))
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    kept = places - table.indptr[entry_rows(table)] < most
    return or_literal(rows_of_1(kept_entries(table, kept)), spelling)


def by_nearest(
    query_vectors: np.ndarray,
    document_vectors: np.ndarray,
    occurring: np.ndarray,
    spelling: sp.csr_array,
) -> sp.csr_array:
    """The one document word nearest to each query word, by the cosine of their vectors.

    TbT-QT of Litschko et al., "Unsupervised Cross-Lingual Information Retrieval using Monolingual
    Data Only", SIGIR 2018.

    Args:
        query_vectors: `[query vocabulary, dim]`; zeros for words without a vector.
        document_vectors: `[document words, dim]`, the same.
        occurring: `[document words]` bool, the words that the collection has.
    """
    candidates = np.flatnonzero(occurring & document_vectors.any(axis=1))
    asked = np.flatnonzero(query_vectors.any(axis=1)) if len(candidates) else candidates
    units = _units(document_vectors[candidates]).T
    step = max(1, _SIMILARITIES_AT_ONCE // max(1, len(candidates)))
    nearest = np.zeros(len(asked), np.int64)
    for begin in range(0, len(asked), step):
        part = slice(begin, begin + step)
        nearest[part] = candidates[(_units(query_vectors[asked[part]]) @ units).argmax(axis=1)]
    shape = spelling.shape[1], spelling.shape[0]
    found = sp.csr_array((np.ones(len(asked), np.float32), (asked, nearest)), shape=shape)
    return or_literal(found, spelling)


def or_literal(translation: sp.csr_array, spelling: sp.csr_array) -> sp.csr_array:
    """A translation where words that it does not have stay as they are spelled."""
    missing = np.diff(translation.indptr) == 0
    return sp.csr_array(translation + sp.diags_array(missing.astype(np.float32)) @ spelling.T)


def _units(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
