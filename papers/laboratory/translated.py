"""Queries translated word by word, and rankers in the language of the documents.

A translation is a matrix `[query words, document words]` whose rows sum to 1: a query becomes a bag
of weighted document words. Words that are not translated stay as they are spelled. Scores of
rankers are sums over query words.

BM25: Robertson et al., "Okapi at TREC-3", 1994.

    score(q, d) = Σ_t n(t, q) idf(t) tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean length))
    idf(t) = log(1 + (N - df + 1/2) / (df + 1/2))

for tf occurrences of t in d, df documents that have t, of N. The idf is that of Lucene, which is
never negative; Lucene leaves out the constant k1 + 1, which changes no ranking.

Query likelihood: Ponte and Croft, "A Language Modeling Approach to Information Retrieval", SIGIR
1998; with the Dirichlet smoothing of Zhai and Lafferty, "A Study of Smoothing Methods for Language
Models", SIGIR 2001:

    log P(q | d) = Σ_t n(t, q) log((tf + μ P(t)) / (|d| + μ)),

where P(t) is the share that t has of the collection, and words that the collection does not have
are left out. Without the terms that are the same for all documents,

    score(q, d) = Σ_t n(t, q) (log(1 + tf / (μ P(t))) + log(μ / (|d| + μ))).
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.postings import lexical_rows
from tf_smoothclir.lexical.sparse_tables import largest_of_rows, rows_of_1
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.protocols.scorer import ScoreRows

_SIMILARITIES_AT_ONCE = 1 << 24


def literal(spelling: sp.csr_array) -> sp.csr_array:
    """The translation that leaves every word as it is, by `same_spelling`."""
    return sp.csr_array(spelling.T)


def by_table(table: sp.csr_array, spelling: sp.csr_array, most: int) -> sp.csr_array:
    """The best translations of each word by P(t | w), `[query words, document words]`."""
    return or_literal(rows_of_1(largest_of_rows(table, most)), spelling)


def by_nearest(
    query_vectors: np.ndarray,
    document_vectors: np.ndarray,
    occurring: np.ndarray,
    spelling: sp.csr_array,
) -> sp.csr_array:
    """The one document word nearest to each query word, by the cosine of their vectors."""
    # TbT-QT of Litschko et al., "Unsupervised Cross-Lingual Information Retrieval using Monolingual
    # Data Only", SIGIR 2018. Rows of zeros are no vectors; `occurring`: the collection has these
    # words.
    candidates = np.flatnonzero(occurring & document_vectors.any(axis=1))
    asked = np.flatnonzero(query_vectors.any(axis=1)) if len(candidates) else candidates

    def units_of(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    units = units_of(document_vectors[candidates]).T
    step = max(1, _SIMILARITIES_AT_ONCE // max(1, len(candidates)))
    nearest = np.zeros(len(asked), np.int64)
    for begin in range(0, len(asked), step):
        part = slice(begin, begin + step)
        nearest[part] = candidates[(units_of(query_vectors[asked[part]]) @ units).argmax(axis=1)]
    shape = spelling.shape[1], spelling.shape[0]
    table = sp.csr_array((np.ones(len(asked), np.float32), (asked, nearest)), shape=shape)
    return or_literal(table, spelling)


def or_literal(translation: sp.csr_array, spelling: sp.csr_array) -> sp.csr_array:
    """A translation where words that it does not have stay as they are spelled."""
    missing = np.diff(translation.indptr) == 0
    return sp.csr_array(translation + sp.diags_array(missing.astype(np.float32)) @ spelling.T)


@dataclasses.dataclass(frozen=True)
class Collection:
    """Documents as rankers see them."""

    # `[documents, words]` float32, how often each word stands in each document.
    counts: sp.csr_array
    lengths: np.ndarray  # `[documents]`, words of each document, those without an id too

    @property
    def occurrences(self) -> np.ndarray:
        """`[words]`, how often each word stands in the collection."""
        return np.bincount(self.counts.indices, self.counts.data, minlength=self.counts.shape[1])

    @classmethod
    def of(cls, documents: Words) -> Collection:
        """Counts the words of documents."""
        return cls(documents.matrix(), np.diff(documents.offsets))


@functools.lru_cache(maxsize=1)
def collection_of(texts: LexicalTexts) -> Collection:
    """The documents of a set."""
    return Collection.of(texts.documents)


@dataclasses.dataclass(frozen=True)
class TermWeights:
    """Term weights: what query words add to the scores of documents."""

    impacts: sp.csr_array  # `[documents, words]` float32, what a word adds where it occurs
    # `[documents]` float32, what every query word that the collection has adds besides, by the
    # length of the document; None for nothing.
    of_length: np.ndarray | None = None

    def rows(self, queries: sp.csr_array) -> ScoreRows:
        """Scorer of the collection by `[queries, words]`, counts or weights of words."""
        sums = lexical_rows(queries, self.impacts)
        if self.of_length is None:
            return sums
        occurring = np.bincount(self.impacts.indices, minlength=self.impacts.shape[1]) > 0
        sizes = np.asarray(queries @ occurring.astype(np.float32))

        def rows(query_rows: np.ndarray) -> np.ndarray:
            return sums(query_rows) + np.outer(sizes[query_rows], self.of_length)

        return rows


@dataclasses.dataclass(frozen=True)
class Bm25:
    """BM25 with its two parameters."""

    k1: float = 1.2  # how much further occurrences of a word count, at least 0; 0 for nothing
    b: float = 0.75  # how much the length of a document counts, in [0, 1]

    def __call__(self, collection: Collection) -> TermWeights:
        """Impacts: what each word adds to the score of each document."""
        counts, lengths = collection.counts, collection.lengths
        documents, mean = counts.shape[0], max(lengths.mean(), 1)
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        rarity = np.log1p((documents - frequency + 0.5) / (frequency + 0.5))
        saturation = self.k1 * (1 - self.b + self.b * lengths / mean)
        saturation = np.repeat(saturation, np.diff(counts.indptr))
        impacts = counts.copy()
        impacts.data = rarity[counts.indices] * counts.data * (self.k1 + 1)
        impacts.data = (impacts.data / (counts.data + saturation)).astype(np.float32)
        return TermWeights(impacts)


@dataclasses.dataclass(frozen=True)
class QueryLikelihood:
    """Query likelihood with its parameter."""

    mu: float = 1000.0  # μ > 0, words of the collection that smooth a document

    def __call__(self, collection: Collection) -> TermWeights:
        """Impacts: what each word adds to the score of each document."""
        counts, lengths = collection.counts, collection.lengths
        smoothing = self.mu * collection.occurrences / max(lengths.sum(), 1)
        impacts = counts.copy()
        impacts.data = np.log1p(counts.data / smoothing[counts.indices]).astype(np.float32)
        return TermWeights(impacts, np.log(self.mu / (lengths + self.mu)).astype(np.float32))
