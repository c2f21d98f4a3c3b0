"""Search: strings in one language in, documents in the other out, by whatever ranks."""

import abc
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import (
    Answer,
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
)
from tf_smoothclir.search.explanation import (
    ExplainHits,
    ScoreTexts,
    explain_by_leaving_out,
    explain_hits_by_leaving_out,
)
from tf_smoothclir.search.query_reading import EncodeQueries, QueryBatch

# Positions and scores of the best documents; equal scores by the hash of the id.
Ranked = tuple[np.ndarray, np.ndarray]


class HitRanker(abc.ABC):
    """What finds the documents of a collection; a family has one."""

    @property
    def facets(self) -> Mapping[str, Sequence[Any]]:
        """Column of metadata -> its values, if these are few."""
        return {}

    @abc.abstractmethod
    def read(self, queries: Sequence[str]) -> QueryBatch:
        """Reads queries, at least one, for `hits`."""

    @abc.abstractmethod
    def hits(self, batch: QueryBatch, depth: int, filter: str) -> list[list[SearchHit]]:
        """The best documents of each query; see `TextSearch.search`."""

    @abc.abstractmethod
    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        """Splits the score of each hit, at least one; see `TextSearch.explain`."""


class IndexRanker(HitRanker):
    """What ranks the documents of an index."""

    def __init__(self, name: str, index: DocumentIndex):
        """Takes an index for the family of this name."""
        self.index = index
        self._cut_points = family(name).cut_points(index.manifest)

    @property
    def facets(self) -> Mapping[str, Sequence[Any]]:
        return self.index.metadata.facets  # reads all columns: whoever asks for none does not wait

    @abc.abstractmethod
    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterable[Ranked]:
        """Yields the best documents of each query; those that the mask allows."""

    def hits(self, batch: QueryBatch, depth: int, filter: str) -> list[list[SearchHit]]:
        mask = self.index.mask(filter)
        if not batch.texts:
            return []
        known = batch.known_words
        return [
            self.shown(query, self.index.hits(*ranked, self._cut_points, known[place]))
            for place, (query, ranked) in enumerate(zip(batch.texts, self.rank(batch, depth, mask)))
        ]

    def shown(self, query: str, hits: list[SearchHit]) -> list[SearchHit]:
        """Hits with what else is known of them."""
        return hits


class TextSearch:
    """Finds documents for queries, whatever ranks them."""

    def __init__(
        self,
        collection: SearchedCollection,
        ranker: HitRanker,
        mask: Callable[[str], np.ndarray | None] | None = None,  # by a filter
    ):
        self.collection, self.ranker, self._mask = collection, ranker, mask

    @property
    def facets(self) -> Mapping[str, Sequence[Any]]:
        """Column of metadata -> its values, if these are few."""
        return self.ranker.facets

    def search(self, queries: Sequence[str], depth: int, filter: str = "") -> list[Answer]:
        """The best documents of each query; none if nothing is known, none of score 0."""
        batch = self.ranker.read(queries) if len(queries) else QueryBatch([], [])
        known = [place for place, one in enumerate(batch.readings) if one.says_something]
        answers = [Answer((), reading) for reading in batch.readings]
        for place, hits in zip(known, self.ranker.hits(batch.of(known), depth, filter)):
            answers[place] += hits
        return answers

    def leaves_none(self, filter: str = "") -> bool:
        """Whether no document is left by a filter, and by that of the whole search."""
        mask = self._mask and self._mask(filter)
        return mask is not None and not mask.any()

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit of a query into the shares of words of a role."""
        return self.ranker.explain(query, hits, role) if hits else []


def past_empty(
    vector: np.ndarray | None, ranked: Ranked, depth: int, rank: Callable[[int], Ranked]
) -> Ranked:
    """Documents with other scores than 0, as many: empty ones stand before those below 0."""
    asked = depth
    while True:
        positions, scores = ranked
        counted = scores != 0
        all_ranked = len(scores) < asked or vector is None or not vector.any()
        if all_ranked or counted.sum() >= depth:
            return positions[counted][:depth], scores[counted][:depth]
        asked *= 2
        ranked = rank(asked)


class DenseRanker(IndexRanker):
    """Ranks by inner products of vectors."""

    def __init__(
        self, name: str, index: DocumentIndex, encode: EncodeQueries, explain: ExplainHits
    ):
        super().__init__(name, index)
        self._encode, self._half, self._explain = encode, index.half(name), explain

    def read(self, queries: Sequence[str]) -> QueryBatch:
        return self._encode(queries)

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[Ranked]:
        for vector, ranked in zip(batch.vectors, self._half.rank(batch.vectors, depth, mask)):
            deeper = functools.partial(self._half.rank, vector[np.newaxis], mask=mask)
            yield past_empty(vector, ranked, depth, lambda asked, rank=deeper: next(rank(asked)))

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        return self._explain(query, hits, role)


class TextRanker(IndexRanker):
    """Ranks by what scores texts as they are: all documents of an index, in memory."""

    def __init__(self, name: str, index: DocumentIndex, score_texts: ScoreTexts):
        super().__init__(name, index)
        self._score_texts, self._hashes = score_texts, index.documents.hashes
        self._positions = index.documents.positions
        texts = index.documents.fields["text"]
        self._score = score_texts([texts[place] for place in range(len(index))])

    def read(self, queries: Sequence[str]) -> QueryBatch:
        evidence = ("words" if tokens_of(query) else "nothing" for query in queries)
        return QueryBatch(list(queries), list(map(QueryReading, evidence)))

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[Ranked]:
        for query in batch.texts:
            scores = np.asarray(self._score([query]), np.float32)[0]
            found = np.flatnonzero(scores if mask is None else np.where(mask, scores, 0))
            found = found[np.lexsort((self._hashes[found], -scores[found]))[:depth]]
            yield found, scores[found]

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        alone = self._score_texts([hits[0].text])([query])[0, 0]
        if role == "document" and np.isclose(alone, hits[0].score):
            return explain_hits_by_leaving_out(self._score_texts, query, hits, role)
        # Scores depend on the collection, such as on how rare a word is there: only words of the
        # query can be left out without scoring it anew for each word of each hit.
        scored = functools.cache(lambda queries: self._score(list(queries)))

        def scores_of(place: int) -> ScoreTexts:
            return lambda _: lambda queries: scored(tuple(queries))[:, [place]]

        places = self._positions([hit.id for hit in hits], np.arange(0))
        return [
            explain_by_leaving_out(scores_of(place), query, hit.text, "query", hit.score)
            for hit, place in zip(hits, places)
        ]
