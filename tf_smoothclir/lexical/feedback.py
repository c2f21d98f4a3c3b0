"""Pseudo-relevance feedback: documents that resemble what a ranking begins with come next.

The documents that a query ranks first say more about its subject than the query does, and in the
language of the documents (Rocchio 1971; Lavrenko and Croft, "Relevance-Based Language Models",
SIGIR 2001). With documents as TF-IDF vectors v, a score becomes

    score(q, d) + weight v(d) · Σ_k p_k v(d_k),  p = softmax of the `depth` highest scores,

where only the `TERMS` heaviest words of the sum count. The first `depth` documents all get the
highest value among them. So feedback decides what follows them, and keeps their own order.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.postings import Postings

DEPTH = 10
TERMS = 64  # of the mixture; more change no ranking worth the time


def tf_idf(counts: sp.csr_array) -> sp.csr_array:
    """Returns TF-IDF vectors of length 1, `[documents, words]` float32.

    A word has log(1 + tf) log((1 + N) / (1 + df)), for N documents.

    Args:
        counts: `[documents, words]`, how often each word stands in each document.
    """
    frequency = np.bincount(counts.indices, minlength=counts.shape[1])
    rarity = np.log((1 + counts.shape[0]) / (1 + frequency))
    vectors = counts.copy().astype(np.float32)
    vectors.data = (np.log1p(counts.data) * rarity[counts.indices]).astype(np.float32)
    lengths = np.sqrt(np.asarray(vectors.power(2).sum(axis=1)).ravel())
    scale = np.divide(1, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return sp.csr_array(sp.diags_array(scale.astype(np.float32)) @ vectors)


class Feedback:
    """Adds feedback to the scores of a collection."""

    def __init__(self, vectors: sp.csr_array, weight: float, depth: int = DEPTH):
        """Takes a collection.

        Args:
            vectors: `[documents, words]`, of `tf_idf`.
            weight: What a cosine of 1 adds.
            depth: Documents that a ranking begins with.
        """
        self._vectors = vectors
        self._postings = Postings(vectors)
        self.weight = weight
        self.depth = min(depth, vectors.shape[0])

    def added_to(self, scores: np.ndarray) -> np.ndarray:
        """Returns scores of the whole collection with feedback, `[queries, documents]` float32."""
        if not self.weight:
            return scores
        return with_feedback(scores, self.similarities(scores), self.weight)

    def similarities(self, scores: np.ndarray) -> np.ndarray:
        """Returns how much each document resembles what a ranking begins with.

        Args:
            scores: `[queries, documents]` float32.

        Returns:
            The same shape, float32; feedback adds it, times its weight.
        """
        first = np.argpartition(-scores, self.depth - 1, axis=1)[:, : self.depth]
        best = np.take_along_axis(scores, first, axis=1)
        shares = np.exp(best - best.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        similar = self._postings.sums(self._terms(first, shares))
        highest = np.take_along_axis(similar, first, axis=1).max(axis=1, keepdims=True)
        np.put_along_axis(similar, first, np.broadcast_to(highest, first.shape), axis=1)
        return similar

    def _terms(self, first: np.ndarray, shares: np.ndarray) -> sp.csr_array:
        """Returns the mixture of the first documents, the heaviest `TERMS` words of each."""
        queries = np.repeat(np.arange(len(first)), self.depth)
        shape = (len(first), self._vectors.shape[0])
        mixture = sp.csr_array((shares.ravel(), (queries, first.ravel())), shape=shape)
        terms = sp.csr_array(mixture @ self._vectors)
        for begin, end in zip(terms.indptr[:-1], terms.indptr[1:]):
            if end - begin > TERMS:
                values = terms.data[begin:end]
                values[np.argpartition(-values, TERMS)[TERMS:]] = 0
        terms.eliminate_zeros()
        return terms


def with_feedback(scores: np.ndarray, similarities: np.ndarray, weight: float) -> np.ndarray:
    """Returns scores + weight * similarities, of one shape, float32."""
    result = similarities * np.float32(weight)
    result += scores
    return result
