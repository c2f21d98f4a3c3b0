"""BWE-Agg: the cosine of the mean word vectors of two texts, with nothing to learn.

Litschko et al., "Unsupervised Cross-Lingual Information Retrieval using Monolingual Data Only",
SIGIR 2018. BWE-Agg-IDF weighs the words of documents, and of documents alone, by ln(N / df).
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.interaction.inputs import InteractionTexts
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

_PAIRS_AT_ONCE = 1 << 16


class MeanVectors:
    """Scores pairs by the cosine of mean vectors; a `Scorer`."""

    def __init__(
        self,
        texts: InteractionTexts,
        query_vectors: np.ndarray,
        document_vectors: np.ndarray,
        *,
        by_rarity: bool,
    ):
        """Computes the vectors of all texts by `[words, dim]` vectors, zeros for none."""
        queries = word_counts(texts.queries, len(query_vectors))
        documents = word_counts(texts.documents, len(document_vectors))
        if by_rarity:
            frequency = np.bincount(documents.indices, minlength=documents.shape[1])
            rarity = np.log(documents.shape[0] / np.maximum(frequency, 1)).astype(np.float32)
            documents.data = documents.data * rarity[documents.indices]
        # Means and sums have the same direction.
        self._queries = _directions(queries @ _units(query_vectors))
        self._documents = _directions(documents @ _units(document_vectors))

    def score(self, lists: CandidateLists) -> np.ndarray:
        """`[pairs]` float32; 0 where a text has no known word."""
        queries, documents = lists.pair_query_rows, lists.document_rows
        scores = np.zeros(len(documents), np.float32)
        for begin in range(0, len(documents), _PAIRS_AT_ONCE):
            part = slice(begin, begin + _PAIRS_AT_ONCE)
            pairs = self._queries[queries[part]], self._documents[documents[part]]
            scores[part] = np.einsum("pd,pd->p", *pairs)
        return scores


def word_counts(ids: np.ndarray, size: int) -> sp.csr_array:
    """`[texts, size]` float32 counts of known words of `[texts, longest]` ids."""
    texts, places = np.nonzero((ids > UNKNOWN_ID) & (ids < size))
    ones = np.ones(len(texts), np.float32)
    counts = sp.csr_array((ones, (texts, ids[texts, places])), shape=(len(ids), size))
    counts.sum_duplicates()
    return counts


def _units(vectors: np.ndarray) -> np.ndarray:
    return unit_rows(np.asarray(vectors, np.float32))


def _directions(vectors: np.ndarray) -> np.ndarray:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0)
