"""Pseudo-relevance feedback: documents that resemble what a ranking begins with come next.

The documents that a query ranks first say more about its subject than the query does, and in the
language of the documents (Rocchio 1971; Lavrenko and Croft, "Relevance-Based Language Models",
SIGIR 2001). With documents as TF-IDF vectors v, a score becomes

    score(q, d) + weight v(d) · Σ_k p_k v(d_k),  p = softmax of the `depth` highest scores,

where only the `TERMS` heaviest words of the sum count, and only documents with a score above 0 come
first. The first `depth` documents all get the highest value among them. So feedback decides what
follows them, and keeps their own order.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from tf_smoothclir.lexical.postings import Postings, Rows, SparseRows, highest
from tf_smoothclir.lexical.sparse_tables import ends_of, unit_rows
from tf_smoothclir.utils import sparse as sp

DEPTH = 10
TERMS = 64  # of the mixture; more change no ranking worth the time
FEW_TERMS = 8  # the heaviest, which tell most documents from the first ones
_ROUNDING = 1e-5  # more than sums of 64 terms lose


def rarity(frequency: np.ndarray, documents: int) -> np.ndarray:
    """Log((1 + N) / (1 + df)) of each word by df, the documents that have it: `[words]` float64."""
    return np.log((1 + documents) / (1 + frequency))


def tf_idf(counts: sp.csr_array, of_words: np.ndarray | None = None) -> sp.csr_array:
    """TF-IDF vectors of length 1, of counts `[documents, words]`: log(1 + tf) idf; float32."""
    # Without the rarity `of_words`, these are all documents.
    if of_words is None:
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        of_words = rarity(frequency, counts.shape[0])
    vectors = counts.copy().astype(np.float32)
    vectors.data = (np.log1p(counts.data) * of_words[counts.indices]).astype(np.float32)
    return unit_rows(vectors)


@dataclasses.dataclass(frozen=True)
class Feedback:
    """Adds feedback to the scores of a collection."""

    # Postings that are bounds, as those of an index, rule documents out; vectors score the others.

    vectors: Rows
    postings: Postings
    weight: float
    tie_order: np.ndarray  # of equal scores, those of smaller ones come first
    depth: int = DEPTH

    def __post_init__(self):
        object.__setattr__(self, "depth", min(self.depth, len(self.vectors)))

    @classmethod
    def of(
        cls, vectors: sp.csr_array, weight: float, tie_order: np.ndarray | None = None
    ) -> Feedback:
        """Takes a collection as one matrix, `[documents, words]`, of `tf_idf`; ties by row."""
        tie_order = np.arange(vectors.shape[0]) if tie_order is None else tie_order
        return cls(SparseRows.of(vectors), Postings.of(vectors), weight, tie_order)

    def added_to(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the whole collection with feedback, `[queries, documents]` float32."""
        if not self.weight:
            return scores
        return with_feedback(scores, self.similarities(scores), self.weight)

    def similarities(self, scores: np.ndarray) -> np.ndarray:
        """Similarity to the first documents of each row of `[queries, documents]` scores."""
        best = [highest(of_query, self.depth) for of_query in scores]
        found = [self.similarity(rows, row[rows]) for rows, row in zip(best, scores)]
        none = np.zeros(0, np.int32), np.zeros(0, np.float32)
        terms = [none if one is None else (one.words, one.weights) for one in found]
        words, weights = map(np.concatenate, zip(none, *terms))
        ends = ends_of([len(of_query) for of_query, _ in terms])
        shape = len(scores), len(self.postings.rare)
        similarities = self.postings.of_queries(sp.csr_array((weights, words, ends), shape=shape))
        for row, one in zip(similarities, found):
            if one is not None:
                row[one.lifted] = row[one.lifted].max()
        return similarities

    def similarity(self, best: np.ndarray, scores: np.ndarray) -> Similarity | None:
        """Similarity to the first documents; None if none has a score."""
        # `best` are the documents of the `depth` highest scores, all that equal the last of them,
        # and any others; `scores` are theirs.
        best, scores = best[scores > 0], scores[scores > 0]
        if not len(best):
            return None
        order = np.lexsort((self.tie_order[best], -scores))
        first = order[: self.depth]
        # What equals the last of the first counts as one, so equal scores stay equal.
        lifted = best[scores >= scores[first[-1]]]
        return Similarity(self, *self.terms(best[first], scores[first]), lifted)

    def terms(self, first: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The `TERMS` heaviest words of the mixture of some documents, and their weights."""
        # Softmax of the scores, without overflow.
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        ids, values, lengths = self.vectors.entries(first)
        # Σ_k p_k v(d_k), of the words that any of the documents has.
        words, places = np.unique(ids, return_inverse=True)
        weights = np.bincount(places, np.repeat(shares, lengths) * values).astype(np.float32)
        if len(words) > TERMS:  # among words of one weight, which are many, the first
            heaviest = np.sort(np.argsort(-weights, kind="stable")[:TERMS])
            words, weights = words[heaviest], weights[heaviest]
        return words, weights


@dataclasses.dataclass(frozen=True)
class Similarity:
    """How much documents resemble the first ones of one query."""

    feedback: Feedback
    words: np.ndarray  # `[terms]` int, ascending
    weights: np.ndarray  # `[terms]` float32
    lifted: np.ndarray  # the first documents, which all get the highest value among them

    @functools.cached_property
    def highest(self) -> np.float32:
        """The similarity of the first documents."""
        return self._sums(self.lifted).max()

    def of(self, documents: np.ndarray) -> np.ndarray:
        """The similarity of some documents, `[documents]` float32: numbers of `similarities`."""
        new = documents[self._known[documents] == 0]
        self._known[new] = self._sums(new)
        return self._known[documents]

    @functools.cached_property
    def _known(self) -> np.ndarray:
        """Similarities that were asked for, `[documents]` float32; 0 for others."""
        known = np.zeros(self.feedback.postings.rows, np.float32)
        known[self.lifted] = self.highest
        return known

    def _sums(self, documents: np.ndarray) -> np.ndarray:
        vectors, common = self.feedback.vectors, self.feedback.postings.common
        return vectors.sums(documents, self.words, self.weights, common)

    def at_most(self, terms: int = FEW_TERMS) -> np.ndarray:
        """Bounds of the similarity of all documents, `[documents]` float32, from some terms."""
        # The vectors have a length of 1. So other terms add no more than the length of their
        # weights.
        heaviest = np.argsort(-self.weights, kind="stable")
        some = np.sort(heaviest[:terms])
        others = np.linalg.norm(self.weights[heaviest[terms:]]) + _ROUNDING
        bounds = np.full(self.feedback.postings.rows, others, np.float32)
        self.feedback.postings.add_to(bounds, self.words[some], self.weights[some])
        bounds[self.lifted] = self.highest + _ROUNDING
        return bounds


def with_feedback(scores: np.ndarray, similarities: np.ndarray, weight: float) -> np.ndarray:
    """Scores + weight * similarities, of one shape, float32."""
    result = similarities * np.float32(weight)
    result += scores
    return result
