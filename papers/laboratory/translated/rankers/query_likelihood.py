"""Query likelihood with Dirichlet smoothing.

Ponte and Croft, "A Language Modeling Approach to Information Retrieval", SIGIR 1998; smoothed as in
Zhai and Lafferty, "A Study of Smoothing Methods for Language Models", SIGIR 2001:

    log P(q | d) = Σ_t n(t, q) log((tf + μ P(t)) / (|d| + μ)),

where P(t) is the share that t has of the collection, and words that the collection does not have
are left out. Without the terms that are the same for all documents,

    score(q, d) = Σ_t n(t, q) (log(1 + tf / (μ P(t))) + log(μ / (|d| + μ))).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tf_smoothclir.papers.laboratory.translated.rankers.term_weights import Collection, TermWeights


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
