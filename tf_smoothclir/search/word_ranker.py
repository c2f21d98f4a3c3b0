"""Ranking by words, or by words and vectors: scores of all documents, then feedback over them.

A score is as in evaluation,

    score(q, d) = a lexical(q, d) + w SCS(q, d) + feedback weight · similarity(d).

Of these, the lexical score and the similarity of all documents cost little. Of the SCS, the dense
half of the index tells those of the nearest documents nearly, and that no other one is higher than
some bound. So the documents that can be among the best are known, which are few; only these are
scored by their vectors (the threshold algorithm of Fagin, Lotem and Naor, PODS 2001). The ranking
is exact where that of the dense half is, as in a flat index.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.ranker import Nearest, Ranker
from tf_smoothclir.lexical.feedback import Feedback, with_feedback
from tf_smoothclir.lexical.postings import highest

_FIRST = 100  # documents, the best by words, that show which others can be among the best
_NEAREST = 1000, 8000  # asked of the dense half; more, where the bound rules out too few others


class Query(NamedTuple):
    """A query as both kinds of models see it.

    Attributes:
        words: `[words]` int32, as `QueryReader` numbers them.
        vector: `[dim]` float32; None where towers have no weight.
    """

    words: np.ndarray
    vector: np.ndarray | None


class WordRanker:
    """Ranks the documents of an index that has impacts.

    Attributes:
        of_lexical: float32, what lexical scores are multiplied by.
        of_dense: float32, what SCS is multiplied by; 0: queries need no vector.
        feedback: None for none.
        dense: Ranks by vectors; None if these have no weight.
    """

    def __init__(self, index: DocumentIndex, weights: tuple[float, float], feedback: float):
        self.index = index
        self.of_lexical, self.of_dense = map(np.float32, weights)
        self.feedback: Feedback | None = index.lexical.feedback(feedback)
        self.dense: Ranker | None = index.dense if self.of_dense else None

    def ask(self, query: Query) -> AskedQuery:
        """Begins to rank."""
        return AskedQuery(self, query)


class AskedQuery:
    """Scores of all documents for one query: to rank them, and then to explain hits."""

    def __init__(self, ranker: WordRanker, query: Query):
        self._ranker, self.query = ranker, query
        self._found: Nearest | None = None
        self._asked = 0
        self._lexical = self._of_words()
        self._similar: np.ndarray | None = None
        if ranker.feedback is not None:
            self._similar = self._similarities(ranker.feedback)

    def rank(self, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """The best documents, best first; equal scores by the hash of the id.

        Returns:
            `(positions int64, scores float32)`; empty if no document has a word of the query and
            only words rank: feedback would find what is like chance.
        """
        depth = min(depth, len(self._lexical))
        if self._ranker.dense is None and not self._lexical.any():
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        known = self._lexical
        if self._similar is not None:
            known = with_feedback(known, self._similar, 1.0)
        positions = self._candidates(known, depth)
        scores = _sum(*self.parts(positions))
        hashes = self._ranker.index.documents.hashes[positions]
        order = np.lexsort((hashes, -scores))[:depth]
        return positions[order], scores[order]

    def best_passages(self, positions: np.ndarray) -> np.ndarray:
        """The passage that matches best by its words, `[positions]` int, from 0."""
        return self._ranker.index.lexical.best_passages(self.query.words, positions)

    def parts(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Shares of words, towers and feedback in scores, `[positions]` float32 each."""
        dense = fed = np.zeros(len(positions), np.float32)
        if self._ranker.dense is not None:
            dense = self._of_vectors(positions)
        if self._similar is not None:
            fed = self._similar[positions]
        return self._lexical[positions], dense, fed

    def _of_words(self) -> np.ndarray:
        """Share of words in the score of each document, `[documents]` float32."""
        return self._ranker.of_lexical * self._ranker.index.lexical.scores(self.query.words)

    def _of_vectors(self, positions: np.ndarray) -> np.ndarray:
        """Share of vectors in the scores of some documents, `[positions]` float32."""
        return self._ranker.of_dense * self._ranker.dense.scores(self.query.vector, positions)

    def _similarities(self, feedback: Feedback) -> np.ndarray:
        """Share of feedback in the score of each document, `[documents]` float32."""
        best = self._candidates(self._lexical, feedback.depth)
        similar = np.zeros(len(self._lexical), np.float32)
        feedback.add_similarities(similar, best, _sum(*self.parts(best)))
        similar *= np.float32(feedback.weight)
        return similar

    def _candidates(self, known: np.ndarray, depth: int) -> np.ndarray:
        """Documents that include the best `depth`, and all that equal the last of them.

        Args:
            known: `[documents]` float32, the scores without the part of the vectors.
        """
        vector = self.query.vector
        if self._ranker.dense is None or not vector.any():  # then every SCS is 0
            return highest(known, depth)
        weight = float(self._ranker.of_dense)
        # What float32 may lose: in a product of vectors no longer than 1, and in a sum.
        lost = 2.0**-22 * (len(vector) * weight + np.abs(known).max())
        first = highest(known, min(max(depth, _FIRST), len(known)))
        least = np.partition(self._about(known, first), -depth)[-depth] - lost
        for number in _NEAREST:
            near = self._nearest(number)
            sums = known[near.positions] + self._ranker.of_dense * near.scores
            lost_there = weight * near.error + lost
            if len(sums) >= depth:
                least = max(least, np.partition(sums, -depth)[-depth] - lost_there)
            others = np.flatnonzero(known >= least - weight * near.others - lost)
            if len(others) <= number:
                break
        possible = near.positions[sums >= least - lost_there]
        positions = np.unique(np.concatenate([first, possible, others]))
        sums = self._about(known, positions)
        return positions[sums >= np.partition(sums, -depth)[-depth] - lost]

    def _nearest(self, number: int) -> Nearest:
        """The nearest documents, at least so many; kept, as both rankings need them."""
        if self._found is None or self._asked < number:
            self._found = self._ranker.dense.nearest(self.query.vector, number)
            self._asked = number
        return self._found

    def _about(self, known: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The whole scores of some documents, nearly: in float32."""
        products = self._ranker.dense.about(self.query.vector, positions)
        return known[positions] + self._ranker.of_dense * products


def _sum(lexical: np.ndarray, dense: np.ndarray, fed: np.ndarray) -> np.ndarray:
    """Adds the parts of scores in the order of evaluation, so that they are the same numbers."""
    return fed + (lexical + dense)
