"""Search by words, or by words and vectors in one ranking."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.encoder.tokenizer import passage_text
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.protocols.text_search import (
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
)
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.query_reading import EncodeQueries, with_better
from tf_smoothclir.search.rank_fusion import ranker_of
from tf_smoothclir.search.word_explanation import WordExplainer
from tf_smoothclir.search.word_ranker import AskedQuery, Query


class _Answer(NamedTuple):
    """The latest answer, whose hits are likely to be explained.

    Attributes:
        places: Id of a hit -> its position in the index.
    """

    text: str
    asked: AskedQuery
    places: dict[str, int]


class WordSearch:
    """A `TextSearch` with a lexical model, and with towers where it has an encoder of queries."""

    def __init__(
        self,
        lexical: LexicalParts,
        index: DocumentIndex,
        collection: SearchedCollection,
        encode_queries: EncodeQueries | None = None,
    ):
        self.collection = collection
        self._index, self._read = index, lexical.plain_query_reader
        self._titles = lexical.text.reads_titles
        self._passage_words = lexical.model.passage_words if index.lexical.has_passages else 0
        fusion = lexical.ranking(with_towers=encode_queries is not None)
        self._ranker = ranker_of(index, fusion)
        halves = [] if encode_queries is None else [DenseHalf.name]
        self._cut_points = index.manifest.cut_points_of(*halves, LexicalHalf.name)
        self._encode = encode_queries if self._ranker.dense is not None else None
        self._explainer = WordExplainer(lexical)
        self._latest: _Answer | None = None

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """The best `depth` documents of each query, best first; see `TextSearch`."""
        found = []
        for text, reading, query in zip(queries, *self._as_queries(queries)):
            if not reading.says_something:
                found.append([])
                continue
            asked = self._ranker.ask(query)
            positions, scores = asked.rank(depth)
            positions, scores = positions[scores != 0], scores[scores != 0]
            hits = self._index.hits(positions, scores, self._cut_points)
            places = dict(zip((hit.id for hit in hits), positions.tolist()))
            if self._passage_words:
                hits = self._with_passages(hits, asked.best_passages(positions))
            found.append(hits)
            self._latest = _Answer(text, asked, places)  # because hits are explained right after
        return found

    def read(self, queries: Sequence[str]) -> list[QueryReading]:
        """Evidence of each query in words, or else in the query tower; see `TextSearch`."""
        _, readings = self._read.queries(queries)
        if self._encode is None or all(reading.says_something for reading in readings):
            return readings
        return with_better(readings, self._encode(queries).readings)

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into words, towers and feedback; see `TextSearch`."""
        if not hits:
            return []
        latest = self._latest  # of another thread perhaps, but whole
        if latest is None or latest.text != query:
            _, (asked,) = self._as_queries([query])
            latest = _Answer(query, self._ranker.ask(asked), {})
        asked = latest.asked
        positions = np.array([latest.places.get(hit.id, -1) for hit in hits])
        for number in np.flatnonzero(positions < 0):
            positions[number] = self._position(hits[number].id)
        parts = np.stack(asked.parts(positions), axis=1)
        return self._explainer.explain(asked.query.words, hits, parts, role)

    def _with_passages(self, hits: list[SearchHit], numbers: np.ndarray) -> list[SearchHit]:
        longest, titles = self._passage_words, self._titles
        passages = [
            passage_text(hit.text, number, longest, hit.title if titles else "")
            for hit, number in zip(hits, numbers.tolist())
        ]
        return [
            dataclasses.replace(hit, passage=passage) if passage != hit.text else hit
            for hit, passage in zip(hits, passages)
        ]

    def _as_queries(self, queries: Sequence[str]) -> tuple[list[QueryReading], list[Query]]:
        """Evidence of queries, and queries as both kinds of models see them."""
        if not len(queries):
            return [], []
        words, readings = self._read.queries(queries)
        vectors = [None] * len(queries)
        if self._encode is not None:
            vectors, of_tower = self._encode(queries)
            readings = with_better(readings, of_tower)
        texts = np.split(words.ids, words.offsets[1:-1])
        return readings, [Query(*read) for read in zip(texts, vectors)]

    def _position(self, id_: str) -> int:
        same = np.flatnonzero(self._index.documents.hashes == hash_ids([id_])[0])
        return next(place for place in same if self._index.documents[place].id == id_)
