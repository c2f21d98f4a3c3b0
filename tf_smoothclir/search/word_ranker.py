"""Ranking by words, or by words and vectors: scores of all documents, then feedback over them.

A score is as in evaluation,

    score(q, d) = a lexical(q, d) + w SCS(q, d) + feedback weight · similarity(d).

Of these, the lexical score and the similarity of all documents cost little. The SCS of a document
is at most the length of the query's vector, because vectors are smooth-normalised. So documents
that cannot reach the best ones with even that much need none, and the ranking is exact all the
same, whatever kind of index the vectors are in.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.lexical.feedback import Feedback, with_feedback
from tf_smoothclir.lexical.postings import highest

_FIRST = 100  # documents that show which others can be among the best
_VECTORS_PER_CALL = 1 << 16
_MOST_READ = 0.1  # of all vectors; to multiply them all costs no more than to copy so many


class Query(NamedTuple):
    """A query as both kinds of models see it.

    Attributes:
        words: `[words]` int32, as `QueryReader` numbers them.
        vector: `[dim]` float32; None where towers have no weight.
    """

    words: np.ndarray
    vector: np.ndarray | None


class WordRanker:
    """Ranks the documents of an index that has impacts."""

    def __init__(self, index: DocumentIndex, weights: tuple[float, float], feedback: float):
        """Joins what ranks.

        Args:
            index: Has impacts, and vectors if these have a weight.
            weights: What a lexical score and an SCS are multiplied by; see `Fusion.weights`.
            feedback: Weight of feedback; 0 for none.
        """
        self._index = index
        self._of_lexical, self._of_dense = map(np.float32, weights)
        self._feedback: Feedback | None = index.lexical.feedback(feedback)
        self._latest: tuple[Query | None, tuple | None] = None, None
        self._latest_products: tuple[Query | None, np.ndarray | None] = None, None

    @property
    def has_vectors(self) -> bool:
        """Whether queries need a vector."""
        return self._of_dense != 0

    def rank(self, query: Query, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Returns the best documents, best first; equal scores by the hash of the id.

        Returns:
            `(positions int64, scores float32)`; empty if no document has a word of the query and
            only words rank: feedback would find what is like chance.
        """
        depth = min(depth, len(self._index))
        lexical, similar = self._rows(query)
        if not self.has_vectors and not lexical.any():
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        known = lexical if similar is None else with_feedback(lexical, similar, 1.0)
        positions = self._candidates(known, query, depth)
        scores = _sum(*self._parts(query, positions, lexical, similar))
        order = np.lexsort((self._index.documents.hashes[positions], -scores))[:depth]
        return positions[order], scores[order]

    def parts(self, query: Query, positions: np.ndarray) -> np.ndarray:
        """Returns what words, towers and feedback add to scores, `[3, positions]` float32."""
        return np.stack(self._parts(query, positions, *self._rows(query)))

    def _rows(self, query: Query) -> tuple[np.ndarray, np.ndarray | None]:
        """Returns what words and feedback add to the score of each document, `[documents]`.

        The latest are kept, because hits are explained right after they are found.
        """
        latest, rows = self._latest
        if latest is not query:
            rows = self._new_rows(query)
            self._latest = query, rows
        return rows

    def _new_rows(self, query: Query) -> tuple[np.ndarray, np.ndarray | None]:
        lexical = self._lexical(query)
        if self._feedback is None:
            return lexical, None
        first = self._candidates(lexical, query, self._feedback.depth)
        scores = _sum(*self._parts(query, first, lexical, None))
        best = np.argsort(-scores, kind="stable")[: self._feedback.depth]
        similar = np.zeros(len(lexical), np.float32)
        self._feedback.add_similarities(similar, first[best], scores[best])
        similar *= np.float32(self._feedback.weight)
        return lexical, similar

    def _lexical(self, query: Query) -> np.ndarray:
        """Returns what words add to the score of each document, `[documents]` float32."""
        return self._of_lexical * self._index.lexical.scores(query.words)

    def _dense(self, query: Query, positions: np.ndarray) -> np.ndarray:
        """Returns what vectors add to the scores of some documents, `[positions]` float32."""
        return self._of_dense * self._index.dense.scores(query.vector, positions)

    def _parts(
        self, query: Query, positions: np.ndarray, lexical: np.ndarray, similar: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        dense = fed = np.zeros(len(positions), np.float32)
        if self.has_vectors:
            dense = self._dense(query, positions)
        if similar is not None:
            fed = similar[positions]
        return lexical[positions], dense, fed

    def _candidates(self, known: np.ndarray, query: Query, depth: int) -> np.ndarray:
        """Returns documents that include the best `depth`, and all that equal the last of them.

        Args:
            known: `[documents]` float32, the scores without the part of the vectors.
            query: The query.
            depth: Documents wanted.
        """
        if not self.has_vectors:
            return highest(known, depth)
        most = float(self._of_dense) * float(np.linalg.norm(query.vector))
        # What float32 may lose: in a product of vectors no longer than 1, and in a sum.
        lost = 2.0**-22 * (len(query.vector) * float(self._of_dense) + np.abs(known).max())
        first = highest(known, min(max(depth, _FIRST), len(known)))
        least = np.partition(self._about(known, query, first), -depth)[-depth]
        positions = np.flatnonzero(known >= least - most - lost)
        sums = self._about(known, query, positions)
        return positions[sums >= np.partition(sums, -depth)[-depth] - lost]

    def _about(self, known: np.ndarray, query: Query, positions: np.ndarray) -> np.ndarray:
        """Returns the whole scores of some documents, nearly: in float32."""
        if len(positions) > _MOST_READ * len(known):
            return known[positions] + self._of_dense * self._products(query)[positions]
        vectors, sums = self._index.dense.vectors, known[positions]
        for begin in range(0, len(positions), _VECTORS_PER_CALL):
            part = slice(begin, begin + _VECTORS_PER_CALL)
            sums[part] += self._of_dense * (vectors[positions[part]] @ query.vector)
        return sums

    def _products(self, query: Query) -> np.ndarray:
        """Returns the inner products of a query with all vectors, `[documents]` float32.

        The latest are kept, because feedback and the ranking after it both ask for them.
        """
        latest, products = self._latest_products
        if latest is not query:
            products = self._index.dense.vectors @ query.vector
            self._latest_products = query, products
        return products


def _sum(lexical: np.ndarray, dense: np.ndarray, fed: np.ndarray) -> np.ndarray:
    """Adds the parts of scores in the order of evaluation, so that they are the same numbers."""
    return fed + (lexical + dense)
