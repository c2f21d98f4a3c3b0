"""Search in an index: queries are read once, ranked, and answered with documents."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import (
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
)
from tf_smoothclir.search.explanation import ScoreTexts, explain_by_leaving_out
from tf_smoothclir.search.query_reading import EncodeQueries, QueryBatch


class Ranked(NamedTuple):
    """The best documents of a query, best first; equal scores by the hash of the id.

    Attributes:
        positions: `[documents]` int64, in the index.
        scores: `[documents]` float32.
    """

    positions: np.ndarray
    scores: np.ndarray


class IndexRanker:
    """What ranks the documents of an index; a family has one."""

    def read(self, queries: Sequence[str]) -> QueryBatch:
        """Reads queries, at least one, for `rank`."""
        raise NotImplementedError

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterable[Ranked]:
        """Yields the best `depth` documents of each query.

        Args:
            mask: `[documents]` bool, which may be found; None for all. The ranking is that of all
                documents without the others.
        """
        raise NotImplementedError

    def shown(self, query: str, hits: list[SearchHit]) -> list[SearchHit]:
        """Hits with what else is known of them."""
        return hits

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        """Splits the score of each hit into shares; see `TextSearch.explain`."""
        raise NotImplementedError


class IndexSearch:
    """A `TextSearch` over an index."""

    def __init__(
        self, name: str, ranker: IndexRanker, index: DocumentIndex, collection: SearchedCollection
    ):
        """Joins an index and the ranker of a family, which has this name."""
        self.collection = collection
        self._ranker, self._index = ranker, index
        self._cut_points = family(name).cut_points(index.manifest)
        self._latest: QueryBatch | None = None

    @property
    def facets(self) -> Mapping[str, Sequence[Any]]:
        """Column of metadata -> its values, if these are few."""
        return self._index.metadata.facets

    def search(self, queries: Sequence[str], depth: int, filter: str = "") -> list[list[SearchHit]]:
        """The best `depth` documents of each query, best first; see `TextSearch`."""
        mask = self._index.mask(filter)
        if not len(queries):
            return []
        batch = self._batch(queries)
        known = [place for place, one in enumerate(batch.readings) if one.says_something]
        found: list[list[SearchHit]] = [[] for _ in queries]
        for place, ranked in zip(known, self._ranker.rank(batch.of(known), depth, mask)):
            hits = self._index.hits(*ranked, self._cut_points)
            found[place] = self._ranker.shown(queries[place], hits)
        return found

    def read(self, queries: Sequence[str]) -> list[QueryReading]:
        """Evidence of each query; see `TextSearch`."""
        return self._batch(queries).readings if len(queries) else []

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into shares; see `TextSearch`."""
        return self._ranker.explain(query, hits, role) if hits else []

    def _batch(self, queries: Sequence[str]) -> QueryBatch:
        latest = self._latest  # who searches asks for the evidence too
        if latest is None or latest.texts != list(queries):
            self._latest = latest = self._ranker.read(queries)
        return latest


class DenseRanker(IndexRanker):
    """Ranks by inner products of vectors."""

    def __init__(
        self,
        encode: EncodeQueries,
        half: Ranker,
        explain: Callable[[str, Sequence[SearchHit], str], list[Explanation]],
    ):
        self._encode, self._half, self._explain = encode, half, explain

    def read(self, queries: Sequence[str]) -> QueryBatch:
        return self._encode(queries)

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[Ranked]:
        if batch.texts:
            ranked = self._half.rank(batch.vectors, depth, mask)
            yield from (Ranked(*one) for one in ranked)

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        return self._explain(query, hits, role)


class TextRanker(IndexRanker):
    """Ranks by what scores texts as they are: all documents of an index, in memory."""

    def __init__(self, score_texts: ScoreTexts, index: DocumentIndex):
        self._score_texts, self._hashes = score_texts, index.documents.hashes
        self._score = score_texts([index.documents[place].text for place in range(len(index))])

    def read(self, queries: Sequence[str]) -> QueryBatch:
        evidence = ("words" if tokens_of(query) else "nothing" for query in queries)
        return QueryBatch(list(queries), list(map(QueryReading, evidence)))

    def rank(
        self, batch: QueryBatch, depth: int, mask: np.ndarray | None = None
    ) -> Iterator[Ranked]:
        allowed = np.arange(len(self._hashes)) if mask is None else np.flatnonzero(mask)
        for query in batch.texts:
            scores = np.asarray(self._score([query]), np.float32)[0, allowed]
            order = np.lexsort((self._hashes[allowed], -scores))[:depth]
            yield Ranked(allowed[order], scores[order])

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        return [
            explain_by_leaving_out(self._score_texts, query, hit.text, role, hit.score)
            for hit in hits
        ]
