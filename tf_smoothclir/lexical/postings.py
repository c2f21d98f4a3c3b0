"""Inverted lists: for each word the documents that have it, and by how much."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp


class Postings:
    """Sums of a few rows of a sparse matrix, which are long: a query asks for few of all words."""

    def __init__(self, impacts: sp.csr_array):
        """Takes `[documents, words]`, what a word adds to the score of a document."""
        by_word = impacts.tocsc()
        self.documents = impacts.shape[0]
        self._ends, self._rows, self._values = by_word.indptr, by_word.indices, by_word.data

    def sums(self, queries: sp.csr_array) -> np.ndarray:
        """Returns Σ_w n(w, q) impact(w, d) of all documents, `[queries, documents]` float32.

        Args:
            queries: `[queries, words]`, counts or weights of words.
        """
        sums = np.zeros((queries.shape[0], self.documents), np.float32)
        for row, begin, end in zip(sums, queries.indptr[:-1], queries.indptr[1:]):
            words, weights = queries.indices[begin:end], queries.data[begin:end]
            for word, weight in zip(words.tolist(), weights.tolist()):
                part = slice(self._ends[word], self._ends[word + 1])
                row[self._rows[part]] += weight * self._values[part]
        return sums
