"""BM25: Robertson et al., "Okapi at TREC-3", 1994.

    score(q, d) = Σ_t n(t, q) idf(t) tf (k1 + 1) / (tf + k1 (1 - b + b |d| / mean length))
    idf(t) = log(1 + (N - df + 1/2) / (df + 1/2))

for tf occurrences of t in d, df documents that have t, of N. The idf is that of Lucene, which is
never negative; Lucene leaves out the constant k1 + 1, which changes no ranking.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from tf_smoothclir.papers.laboratory.translated.rankers.term_weights import Collection, TermWeights


@dataclasses.dataclass(frozen=True)
class Bm25:
    """BM25 with its two parameters."""

    k1: float = 1.2  # how much further occurrences of a word count, at least 0; 0 for nothing
    b: float = 0.75  # how much the length of a document counts, in [0, 1]

    def __call__(self, collection: Collection) -> TermWeights:
        """Impacts: what each word adds to the score of each document."""
        counts, lengths = collection.counts, collection.lengths
        number, mean = counts.shape[0], max(lengths.mean(), 1)
        frequency = np.bincount(counts.indices, minlength=counts.shape[1])
        rarity = np.log1p((number - frequency + 0.5) / (frequency + 0.5))
        saturation = self.k1 * (1 - self.b + self.b * lengths / mean)
        saturation = np.repeat(saturation, np.diff(counts.indptr))
        impacts = counts.copy()
        impacts.data = rarity[counts.indices] * counts.data * (self.k1 + 1)
        impacts.data = (impacts.data / (counts.data + saturation)).astype(np.float32)
        return TermWeights(impacts)
