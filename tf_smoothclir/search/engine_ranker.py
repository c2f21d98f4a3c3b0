"""Search in a collection that an engine holds: by words, by vectors, or by both."""

from collections.abc import Sequence

import numpy as np
from absl import logging

from tf_smoothclir.engines.milvus_collection import MilvusCollection, PartOfQuery, sparse_value
from tf_smoothclir.hybrid.fusion import times_counted
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import Explanation, SearchHit
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.explanation import ExplainHits
from tf_smoothclir.search.query_reading import EncodeQueries, QueryBatch, read_with
from tf_smoothclir.search.text_search import HitRanker
from tf_smoothclir.search.word_explanation import WordExplainer
from tf_smoothclir.utils.errors import input_error


class EngineRanker(HitRanker):
    """Ranks by a lexical model, by towers, or by both."""

    # The engine adds the weighted scores. There is no feedback, which needs the whole collection.

    def __init__(
        self,
        documents: MilvusCollection,
        lexical: LexicalParts | None = None,
        encode_queries: EncodeQueries | None = None,
        explain: ExplainHits | None = None,
    ):
        """Takes what ranks, and what explains hits of towers that rank alone."""
        self._documents, self._encode, self._lexical = documents, encode_queries, lexical
        self._explain = explain
        if lexical is None:
            self._cut_points = family("dense").cut_points(documents.manifest)
            return
        fusion = lexical.ranking(with_towers=encode_queries is not None)
        self._weights = fusion.weights
        self._encode = encode_queries if self._weights["dense"] else None
        self._explainer = WordExplainer(lexical)
        if fusion.feedback:
            reason = "Milvus ranks without feedback, which the export has (%g)."
            logging.info(reason, fusion.feedback)

    def read(self, queries: Sequence[str]) -> QueryBatch:
        return read_with(self._lexical and self._lexical.plain_query_reader, self._encode, queries)

    def hits(self, batch: QueryBatch, depth: int, filter: str) -> list[list[SearchHit]]:
        if filter:
            reason = "a collection in an engine keeps no metadata"
            raise input_error(f"--filter={filter}", reason, "Give it when the search is opened")
        if self._lexical is None:
            if not batch.texts:
                return []
            return self._documents.search(batch.vectors, depth, self._cut_points)
        parts = [self._parts(batch, place) for place in range(len(batch.texts))]
        return [self._documents.search_sum(of_query, depth) for of_query in parts]

    def explain(self, query: str, hits: Sequence[SearchHit], role: str) -> list[Explanation]:
        """Splits the score of each hit; one that a half alone found has a higher one."""
        if self._lexical is None:
            return self._explain(query, hits, role)
        batch = self.read([query])
        scores = np.zeros((len(hits), 4), np.float32)  # words, towers, and what others rank by
        for part in self._parts(batch, 0):
            column = 0 if part.half == "lexical" else 1
            scores[:, column] = self._products(part, [hit.id for hit in hits])
        return self._explainer.explain(batch.words[0], hits, scores, role)

    def _products(self, part: PartOfQuery, ids: Sequence[str]) -> list[float]:
        """Products that a half adds to the scores of documents."""
        fields = [fields[part.half] for fields in self._documents.values(ids)]
        if part.half == "lexical":
            return [
                part.weight * sum(n * value.get(word, 0) for word, n in part.value.items())
                for value in fields
            ]
        return [part.weight * np.dot(np.asarray(value, np.float32), part.value) for value in fields]

    def _parts(self, batch: QueryBatch, place: int) -> list[PartOfQuery]:
        """The parts of a query for the halves with a weight."""
        of_words, of_vectors, parts = self._weights["lexical"], self._weights["dense"], []
        known = batch.words[place][batch.words[place] != NO_WORD]
        different, counts = np.unique(known, return_counts=True)
        if of_words and len(different):
            value = sparse_value(different, counts.astype(np.float32))
            parts.append(PartOfQuery("lexical", value, of_words))
        if batch.vectors is not None:
            vector = np.asarray(batch.vectors[place], np.float32)
            times = float(times_counted(len(known)))
            parts.append(PartOfQuery("dense", vector, of_vectors * times))
        return parts
