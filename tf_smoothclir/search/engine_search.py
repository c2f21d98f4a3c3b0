"""Search by words, or by words and vectors, in a collection that an engine holds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from absl import logging

from tf_smoothclir.engines.milvus_collection import MilvusCollection, PartOfQuery
from tf_smoothclir.engines.milvus_fields import sparse_value
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.protocols.text_search import (
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
)
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.query_reading import EncodeQueries, with_better
from tf_smoothclir.search.word_explanation import WordExplainer


class EngineSearch:
    """A `TextSearch` with a lexical model, and with towers where it has an encoder of queries.

    The engine adds the weighted scores. There is no feedback, which needs the whole collection.
    """

    def __init__(
        self,
        lexical: LexicalParts,
        documents: MilvusCollection,
        collection: SearchedCollection,
        encode_queries: EncodeQueries | None = None,
    ):
        self.collection = collection
        self._lexical, self._documents = lexical, documents
        fusion = lexical.ranking(with_towers=encode_queries is not None)
        self._weights = fusion.weights
        self._read = lexical.plain_query_reader
        self._encode = encode_queries if self._weights[1] else None
        self._by_ranks = fusion.by_ranks
        self._explainer = WordExplainer(lexical)
        if fusion.feedback:
            reason = "Milvus ranks without feedback, which the export has (%g)."
            logging.info(reason, fusion.feedback)

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """The best `depth` documents of each query, best first; see `TextSearch`."""
        readings, parts = self._as_parts(queries)
        known = [own for reading, own in zip(readings, parts) if reading.says_something]
        found = iter(self._found(known, depth))
        return [next(found) if reading.says_something else [] for reading in readings]

    def read(self, queries: Sequence[str]) -> list[QueryReading]:
        """Evidence of each query in words, or else in the query tower; see `TextSearch`."""
        return self._as_parts(queries)[0]

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into words and towers; see `TextSearch.explain`.

        Where the engine found a document by one half only, its score here is the higher one.
        """
        if not hits:
            return []
        _, (parts,) = self._as_parts([query])
        scores = np.zeros((len(hits), 3), np.float32)  # words, towers, feedback
        added = self._points if self._by_ranks else self._products
        for part in parts:
            column = 0 if part.half == LexicalHalf.name else 1
            scores[:, column] = added(part, [hit.id for hit in hits])
        words = self._read.batch([query]).ids
        return self._explainer.explain(words, hits, scores, role)

    def _found(self, queries: list[list[PartOfQuery]], depth: int) -> list[list[SearchHit]]:
        if self._by_ranks:
            points = self._lexical.fusion.points
            return [self._documents.search_points(parts, depth, points) for parts in queries]
        return [self._documents.search_sum(parts, depth) for parts in queries]

    def _products(self, part: PartOfQuery, ids: Sequence[str]) -> list[float]:
        """Products that a half adds to the scores of documents."""
        fields = [fields[part.half] for fields in self._documents.values(ids)]
        if part.half == LexicalHalf.name:
            return [
                part.weight * sum(n * own.get(word, 0) for word, n in part.value.items())
                for own in fields
            ]
        return [part.weight * np.dot(np.asarray(own, np.float32), part.value) for own in fields]

    def _points(self, part: PartOfQuery, ids: Sequence[str]) -> list[float]:
        """Points of documents by their ranks in one half."""
        found = self._documents.points(part, len(ids), self._lexical.fusion.points)
        points = {hit["id"]: hit["distance"] for hit in found}
        return [points.get(id_, 0.0) for id_ in ids]

    def _as_parts(
        self, queries: Sequence[str]
    ) -> tuple[list[QueryReading], list[list[PartOfQuery]]]:
        """Evidence of queries, and the parts of each for the halves with a weight."""
        if not len(queries):
            return [], []
        of_words, of_vectors = self._weights
        parts: list[list[PartOfQuery]] = [[] for _ in queries]
        words, readings = self._read.queries(queries)
        for own, ids in zip(parts, np.split(words.ids, words.offsets[1:-1])):
            different, counts = np.unique(ids[ids != NO_WORD], return_counts=True)
            if of_words and len(different):
                value = sparse_value(different, counts.astype(np.float32))
                own.append(PartOfQuery(LexicalHalf.name, value, of_words))
        if self._encode is not None:
            vectors, of_tower = self._encode(queries)
            readings = with_better(readings, of_tower)
            for own, vector in zip(parts, np.asarray(vectors, np.float32)):
                own.append(PartOfQuery(DenseHalf.name, vector, of_vectors))
        return readings, parts
