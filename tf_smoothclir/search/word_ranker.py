"""Ranking by words, or by words and vectors: scores of all documents, then feedback over them.

A score is as in evaluation,

    score(q, d) = a lexical(q, d) + w SCS(q, d) + feedback weight · similarity(d).

Of these, the lexical score and the similarity of all documents cost little. Of the SCS, the dense
half of the index tells those of the nearest documents nearly, and that no other one is higher than
some bound. So the documents that can be among the best are known, which are few; only these are
scored by their vectors (the threshold algorithm of Fagin, Lotem and Naor, PODS 2001). The ranking
is exact where that of the dense half is, as in a flat index. Where ranks are fused, only the best
1,000 documents by their vectors have points for them; a flat index finds these exactly.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.encoder.tokenizer import passage_text
from tf_smoothclir.hybrid.fusion import DEPTH
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.ranker import Nearest, Ranker
from tf_smoothclir.lexical.feedback import Feedback, with_feedback
from tf_smoothclir.lexical.postings import highest
from tf_smoothclir.protocols.text_search import Explanation, SearchHit
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.query_reading import EncodeQueries, QueryBatch, read_with
from tf_smoothclir.search.text_search import IndexRanker, Ranked
from tf_smoothclir.search.word_explanation import WordExplainer

_FIRST = 100  # documents, the best by words, that show which others can be among the best
_NEAREST = 1000, 8000  # asked of the dense half; more, where the bound rules out too few others


class _Answer(NamedTuple):
    """The latest answer, whose hits are likely to be explained."""

    text: str
    asked: AskedQuery
    positions: np.ndarray


class WordRanker(IndexRanker):
    """Ranks the documents of an index that has impacts.

    Attributes:
        of_lexical: float32, what lexical scores are multiplied by.
        of_dense: float32, what SCS is multiplied by; 0: queries need no vector.
        feedback: None for none.
        dense: Ranks by vectors; None if these have no weight.
    """

    def __init__(
        self,
        name: str,
        index: DocumentIndex,
        parts: LexicalParts,
        encode: EncodeQueries | None = None,
        vectors: str = "dense",
    ):
        """Joins a model and an index; with an encoder of queries, by the fusion of the model.

        Args:
            vectors: The family whose half has the vectors.
        """
        super().__init__(name, index)
        self.fusion = parts.ranking(with_towers=encode is not None)
        self.lexical, self.hashes = index.half("lexical"), index.documents.hashes
        self.of_lexical, self.of_dense = map(np.float32, self.fusion.weights)
        self.feedback: Feedback | None = self.lexical.feedback(self.fusion.feedback)
        self.dense: Ranker | None = index.half(vectors) if self.of_dense else None
        self._encode = encode if self.dense is not None else None
        self._parts, self._explainer = parts, WordExplainer(parts)
        self._latest: _Answer | None = None

    def read(self, queries: Sequence[str]) -> QueryBatch:
        return read_with(self._parts.plain_query_reader, self._encode, queries)

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[Ranked]:
        for place, text in enumerate(batch.texts):
            asked = self._asked(batch, place)
            positions, scores = asked.rank(depth, mask)
            positions, scores = positions[scores != 0], scores[scores != 0]
            self._latest = _Answer(text, asked, positions)  # because hits are explained right after
            yield Ranked(positions, scores)

    def shown(self, query: str, hits: list[SearchHit]) -> list[SearchHit]:
        if not hits:
            return hits
        latest, longest = self._answer(query), self._parts.model.passage_words
        if latest.asked.constant:
            hits = [dataclasses.replace(hit, constant=latest.asked.constant) for hit in hits]
        if not self.lexical.has_passages:
            return hits
        positions = self._positions(latest, hits)
        numbers = self.lexical.best_passages(latest.asked.words, positions)
        text = self._parts.text
        passages = [
            passage_text(
                hit.text,
                number,
                longest,
                hit.title if text.reads_titles else "",
                text.pretokenized,
            )
            for hit, number in zip(hits, numbers.tolist())
        ]
        return [
            hit if passage == hit.text else dataclasses.replace(hit, passage=passage)
            for hit, passage in zip(hits, passages)
        ]

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        latest = self._answer(query)
        parts = np.stack(latest.asked.parts(self._positions(latest, hits)), axis=1)
        return self._explainer.explain(latest.asked.words, hits, parts, role)

    def _asked(self, batch: QueryBatch, place: int) -> AskedQuery:
        vector = None if batch.vectors is None else batch.vectors[place]
        return AskedQuery(self, batch.words[place], vector)

    def _answer(self, query: str) -> _Answer:
        latest = self._latest  # of another thread perhaps, but whole
        if latest is not None and latest.text == query:
            return latest
        return _Answer(query, self._asked(self.read([query]), 0), np.zeros(0, np.int64))

    def _positions(self, answer: _Answer, hits: Sequence[SearchHit]) -> np.ndarray:
        return self.index.documents.positions([hit.id for hit in hits], answer.positions)


class AskedQuery:
    """Scores of all documents for one query: to rank them, and then to explain hits.

    Attributes:
        words: `[words]` int32, as `QueryReader` numbers them.
        vector: `[dim]` float32; None where towers have no weight.
    """

    def __init__(self, ranker: WordRanker, words: np.ndarray, vector: np.ndarray | None):
        self._ranker, self.words, self.vector = ranker, words, vector
        self._found: Nearest | None = None
        self._asked = 0
        self._lexical = self._of_words()
        self._similar: np.ndarray | None = None
        if ranker.feedback is not None:
            self._similar = self._similarities(ranker.feedback)

    @property
    def constant(self) -> float:
        """What feedback adds to each of the first documents."""
        return 0.0 if self._similar is None else float(self._similar.max())

    def rank(self, depth: int, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """The best documents, best first; equal scores by the hash of the id.

        Scores do not depend on the mask: feedback and ranks are those of the whole collection.

        Returns:
            `(positions int64, scores float32)`; empty if no document has a word of the query and
            only words rank: feedback would find what is like chance.
        """
        allowed = len(self._lexical) if mask is None else np.count_nonzero(mask)
        depth = min(depth, allowed)
        if not depth or (self._ranker.dense is None and not self._lexical.any()):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        known = self._lexical
        if self._similar is not None:
            known = with_feedback(known, self._similar, 1.0)
        positions = self._candidates(known, depth, mask)
        scores = _sum(*self.parts(positions))
        order = np.lexsort((self._ranker.hashes[positions], -scores))[:depth]
        return positions[order], scores[order]

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
        scores = self._ranker.lexical.scores(self.words)
        if self._ranker.fusion.by_ranks:
            scores = self._ranker.fusion.points(scores[np.newaxis])[0]
        return self._ranker.of_lexical * scores

    @functools.cached_property
    def _points(self) -> np.ndarray:
        """The points of all documents for their ranks by vectors, `[documents]` float32."""
        points = np.zeros(len(self._lexical), np.float32)
        ((best, scores),) = self._ranker.dense.rank(self.vector[np.newaxis], DEPTH)
        points[best] = self._ranker.fusion.points(scores[np.newaxis])[0]
        return points

    def _of_vectors(self, positions: np.ndarray) -> np.ndarray:
        """Share of vectors in the scores of some documents, `[positions]` float32."""
        if self._ranker.fusion.by_ranks:
            return self._ranker.of_dense * self._points[positions]
        return self._ranker.of_dense * self._ranker.dense.scores(self.vector, positions)

    def _similarities(self, feedback: Feedback) -> np.ndarray:
        """Share of feedback in the score of each document, `[documents]` float32."""
        best = self._candidates(self._lexical, feedback.depth)
        similar = np.zeros(len(self._lexical), np.float32)
        feedback.add_similarities(similar, best, _sum(*self.parts(best)))
        similar *= np.float32(feedback.weight)
        return similar

    def _candidates(
        self, known: np.ndarray, depth: int, mask: np.ndarray | None = None
    ) -> np.ndarray:
        """Documents that include the best `depth`, and all that equal the last of them.

        Args:
            known: `[documents]` float32, the scores without the part of the vectors.
            mask: `[documents]` bool, at least `depth` that may be found; None for all.
        """
        vector = self.vector
        if self._ranker.dense is None or not vector.any():  # then every SCS is 0
            return _highest(known, depth, mask)
        if self._ranker.fusion.by_ranks:
            return _highest(known + self._ranker.of_dense * self._points, depth, mask)
        weight = float(self._ranker.of_dense)
        # What float32 may lose: in a product of vectors no longer than 1, and in a sum.
        lost = 2.0**-22 * (len(vector) * weight + np.abs(known).max())
        allowed = len(known) if mask is None else np.count_nonzero(mask)
        first = _highest(known, min(max(depth, _FIRST), allowed), mask)
        least = np.partition(self._about(known, first), -depth)[-depth] - lost
        for number in _NEAREST:
            near = self._nearest(number)
            if mask is not None:
                kept = mask[near.positions]
                near = near._replace(positions=near.positions[kept], scores=near.scores[kept])
            sums = known[near.positions] + self._ranker.of_dense * near.scores
            lost_there = weight * near.error + lost
            if len(sums) >= depth:
                least = max(least, np.partition(sums, -depth)[-depth] - lost_there)
            may_be_higher = known >= least - weight * near.others - lost
            others = np.flatnonzero(may_be_higher if mask is None else may_be_higher & mask)
            if len(others) <= number:
                break
        possible = near.positions[sums >= least - lost_there]
        positions = np.unique(np.concatenate([first, possible, others]))
        sums = self._about(known, positions)
        return positions[sums >= np.partition(sums, -depth)[-depth] - lost]

    def _nearest(self, number: int) -> Nearest:
        """The nearest documents, at least so many; kept, as both rankings need them."""
        if self._found is None or self._asked < number:
            self._found = self._ranker.dense.nearest(self.vector, number)
            self._asked = number
        return self._found

    def _about(self, known: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """The whole scores of some documents, nearly: in float32."""
        products = self._ranker.dense.about(self.vector, positions)
        return known[positions] + self._ranker.of_dense * products


def _highest(scores: np.ndarray, depth: int, mask: np.ndarray | None) -> np.ndarray:
    """The places of the highest scores of those that may be found; see `highest`."""
    if mask is None:
        return highest(scores, depth)
    allowed = np.flatnonzero(mask)
    return allowed[highest(scores[allowed], depth)]


def _sum(lexical: np.ndarray, dense: np.ndarray, fed: np.ndarray) -> np.ndarray:
    """Adds the parts of scores in the order of evaluation, so that they are the same numbers."""
    return fed + (lexical + dense)
