"""Ranking by words, or by words and vectors: scores of all documents, then feedback over them.

A score is as in evaluation,

    score(q, d) = a lexical(q, d) + n(q) Σ_v w_v SCS_v(q, d) + feedback weight · similarity(d),

where v are towers, a foreign encoder, or both, and n(q) words of the query are known. Of each part,
the index knows bounds for all documents: from bytes instead of numbers, from the heaviest words of
feedback, from the score of the last of the nearest vectors. So the documents that can be among the
best are known, which are few; only these are scored (the threshold algorithm of Fagin, Lotem and
Naor, PODS 2001). The ranking is exact where those of the halves are, as in flat indexes.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Sequence

import numpy as np

from tf_smoothclir.encoder.tokenizer import passage_text
from tf_smoothclir.hybrid.fusion import times_counted
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.lexical.feedback import FEW_TERMS, TERMS, Feedback, Similarity, with_feedback
from tf_smoothclir.lexical.posting_bounds import may_be_best
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import Explanation, SearchHit
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.query_reading import EncodeQueries, QueryBatch, read_with
from tf_smoothclir.search.text_search import IndexRanker, Ranked, past_empty
from tf_smoothclir.search.word_explanation import WordExplainer

_FIRST = 100  # documents, the best by bounds, that show which others can be among the best
# Words of feedback, and nearest documents of each half with vectors, that bound the scores of
# others; more, where they leave more documents than the second number.
_BOUNDING = (FEW_TERMS, 1000), (TERMS, 8000)


class WordRanker(IndexRanker):
    """Ranks the documents of an index that has impacts."""

    def __init__(
        self,
        name: str,
        index: DocumentIndex,
        parts: LexicalParts,
        encode: EncodeQueries | None = None,
        vectors: Sequence[str] = ("dense",),
    ):
        """Joins a model and an index; `encode` gives the vectors of all of `vectors`."""
        super().__init__(name, index)
        fusion = parts.ranking(with_towers=encode is not None)
        self.lexical, self.hashes = index.half("lexical"), index.documents.hashes
        weights = {part: np.float32(weight) for part, weight in fusion.weights.items()}
        self.of_lexical = weights["lexical"]
        self.feedback: Feedback | None = self.lexical.feedback(fusion.feedback)
        self.vectors: dict[str, tuple[np.float32, Ranker]] = {
            part: (weights[part], index.half(part)) for part in vectors if weights[part]
        }
        self._encode = encode if self.vectors else None
        self._parts, self._explainer = parts, WordExplainer(parts)
        self._latest: AskedQuery | None = None  # because hits are explained right after

    def read(self, queries: Sequence[str]) -> QueryBatch:
        reader = self._parts.plain_query_reader
        return read_with(reader, self._encode, queries, self.lexical.new_words)

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[Ranked]:
        for place in range(len(batch.texts)):
            asked = self._asked(batch, place)
            vector = batch.vectors[place] if self.vectors else None
            first = asked.rank(depth, mask)
            ranked = past_empty(vector, first, depth, functools.partial(asked.rank, mask=mask))
            asked.found, self._latest = ranked[0], asked
            yield ranked

    def shown(self, query: str, hits: list[SearchHit]) -> list[SearchHit]:
        if not hits:
            return hits
        latest, longest = self._answer(query), self._parts.model.passage_words
        if constant := latest.constant:
            hits = [dataclasses.replace(hit, constant=constant) for hit in hits]
        positions, text = self._positions(latest, hits), self._parts.text
        shown = []
        for hit, number in zip(hits, self.lexical.best_passages(latest.words, positions)):
            if number is not None:
                title = hit.title if text.reads_titles else ""
                passage = passage_text(hit.text, number, longest, title, text.pretokenized)
                if passage != hit.text:
                    hit = dataclasses.replace(hit, passage=passage)
            shown.append(hit)
        return shown

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        latest = self._answer(query)
        parts = np.stack(latest.parts(self._positions(latest, hits)), axis=1)
        return self._explainer.explain(latest.words, hits, parts, role)

    def _asked(self, batch: QueryBatch, place: int) -> AskedQuery:
        vector = None if batch.vectors is None else batch.vectors[place]
        return AskedQuery(self, batch.texts[place], batch.words[place], vector)

    def _answer(self, query: str) -> AskedQuery:
        latest = self._latest  # of another thread perhaps, but whole
        if latest is not None and latest.text == query:
            return latest
        return self._asked(self.read([query]), 0)

    def _positions(self, asked: AskedQuery, hits: Sequence[SearchHit]) -> np.ndarray:
        return self.index.documents.positions([hit.id for hit in hits], asked.found)


class AskedQuery:
    """What the index knows of all documents for one query: to rank them, then to explain hits."""

    def __init__(self, ranker: WordRanker, text: str, words: np.ndarray, vector: np.ndarray | None):
        """Asks for all that words say; takes all vectors, one after the other."""
        self._ranker, self.text, self.words, begin = ranker, text, words, 0
        self.found = np.zeros(0, np.int64)  # positions of its hits
        self._vectors: dict[str, AskedVector] = {}
        times = times_counted(np.count_nonzero(words != NO_WORD))
        for part, (weight, half) in ranker.vectors.items():
            end = begin + half.vectors.shape[1]
            self._vectors[part] = AskedVector(half, times * weight, vector[begin:end])
            begin = end
        # Bounds of the share of words in scores, `[documents]` float32.
        self._lexical = ranker.of_lexical * ranker.lexical.bounds(words)
        self._known = np.zeros_like(self._lexical)  # scores by words; 0 where nobody asked
        self._fed: Similarity | None = None
        if ranker.feedback is not None:
            best = self._candidates(ranker.feedback.depth)
            self._fed = ranker.feedback.similarity(best, _sum(*self.parts(best)))

    @property
    def constant(self) -> float:
        """What feedback adds to each of the first documents."""
        return 0.0 if self._fed is None else float(self._of_feedback(self._fed.lifted[:1])[0])

    def rank(self, depth: int, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Positions and scores, best first; equal scores by the hash of the id."""
        # Scores do not depend on the mask: feedback and ranks are those of the whole
        # collection. Nothing is found if no document has a word of the query and only words
        # rank: feedback would find chance.
        allowed = len(self._lexical) if mask is None else np.count_nonzero(mask)
        depth = min(depth, allowed)
        if not depth or not (self._vectors or self._lexical.max() > 0):
            return np.zeros(0, np.int64), np.zeros(0, np.float32)
        positions = self._candidates(depth, mask)
        scores = _sum(*self.parts(positions))
        order = np.lexsort((self._ranker.hashes[positions], -scores))[:depth]
        return positions[order], scores[order]

    def parts(self, positions: np.ndarray) -> tuple[np.ndarray, ...]:
        """Shares of words, towers, encoder and feedback in scores, `[positions]` float32 each."""
        nothing = np.zeros(len(positions), np.float32)
        by_vectors = [
            self._vectors[part].scores(positions) if part in self._vectors else nothing
            for part in ("dense", "encoder")
        ]
        fed = nothing if self._fed is None else self._of_feedback(positions)
        return self._of_words(positions), *by_vectors, fed

    def _of_words(self, positions: np.ndarray) -> np.ndarray:
        """Share of words in the scores of some documents, `[positions]` float32."""
        new = positions[(self._known[positions] == 0) & (self._lexical[positions] != 0)]
        self._known[new] = self._ranker.of_lexical * self._ranker.lexical.scores(self.words, new)
        return self._known[positions]

    def _of_feedback(self, positions: np.ndarray) -> np.ndarray:
        """Share of feedback in the scores of some documents, `[positions]` float32."""
        return self._fed.of(positions) * np.float32(self._ranker.feedback.weight)

    def _candidates(self, depth: int, mask: np.ndarray | None = None) -> np.ndarray:
        """Documents that include the best `depth`, and all that equal the last of them."""
        fed, first = self._fed, np.zeros(0, np.int64)
        if fed is not None:  # who begins the ranking without feedback begins that with feedback
            first = fed.lifted if mask is None else fed.lifted[mask[fed.lifted]]
        # Of an empty vector every SCS is 0.
        asked = [vector for vector in self._vectors.values() if vector.vector.any()]
        for terms, nearest in _BOUNDING if len(first) >= depth or not fed else _BOUNDING[1:]:
            bounds = sum((vector.bounds(nearest) for vector in asked), self._lexical)
            if fed is not None:
                weight = self._ranker.feedback.weight
                bounds = with_feedback(bounds, fed.at_most(terms), weight)
            # What products of vectors may lose in float32: none is longer than 1, by heads 1.5.
            products = sum(len(vector.vector) * float(vector.weight) for vector in asked)
            positions, least = may_be_best(
                bounds,
                lambda positions: self._about(asked, self._of_words(positions), positions),
                *(depth, mask, first, 2.0**-22 * products),
                looked_at=_FIRST if asked else 0,
            )
            if len(positions) <= nearest:
                break
        if not (asked or fed):
            return positions
        return positions[self._about(asked, self._lexical[positions], positions) >= least]

    def _about(
        self, asked: Sequence[AskedVector], of_words: np.ndarray, positions: np.ndarray
    ) -> np.ndarray:
        """Scores of some documents, nearly, with this share of words; `[positions]` float32."""
        scores = sum((vector.about(positions) for vector in asked), of_words)
        return scores if self._fed is None else scores + self._of_feedback(positions)


class AskedVector:
    """Vector of a query by one part, and what its half of an index says of it."""

    def __init__(self, half: Ranker, weight: np.float32, vector: np.ndarray):
        self.half, self.weight, self.vector = half, weight, vector
        self._asked, self._near = 0, None

    def bounds(self, number: int) -> np.ndarray:
        """What the part adds at most, `[documents]`, by so many nearest documents."""
        if self._asked < number:
            self._near, self._asked = self.half.nearest(self.vector, number), number
        near = self._near
        bounds = np.full(self.half.documents, max(near.others, -1.0), np.float32)
        bounds[near.positions] = near.scores + near.error
        return self.weight * bounds

    def scores(self, positions: np.ndarray) -> np.ndarray:
        """Share of the part in the scores of some documents, `[positions]` float32."""
        return self.weight * self.half.scores(self.vector, positions)

    def about(self, positions: np.ndarray) -> np.ndarray:
        """The same, nearly: in float32."""
        return self.weight * self.half.about(self.vector, positions)


def _sum(lexical: np.ndarray, dense: np.ndarray, encoder: np.ndarray, fed: np.ndarray):
    """Adds the parts of scores in the order of evaluation, so that they are the same numbers."""
    return fed + (lexical + dense + encoder)
