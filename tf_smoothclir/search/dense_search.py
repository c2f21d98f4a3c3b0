"""Dense search: the query tower, here or in a model server, and an index of vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tf_smoothclir.engines.milvus_collection import MilvusCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.protocols.text_search import (
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
)
from tf_smoothclir.search.explanation import ExplainedTower, explain
from tf_smoothclir.search.query_reading import EncodeQueries

OpenTower = Callable[[str], ExplainedTower]


class DenseSearch:
    """A `TextSearch` by inner products of vectors."""

    def __init__(
        self,
        encode_queries: EncodeQueries,
        index: DocumentIndex | MilvusCollection,
        open_tower: OpenTower,
        collection: SearchedCollection,
    ):
        self.collection = collection
        self._encode = encode_queries
        self._index = index
        self._open_tower = functools.lru_cache(open_tower)

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """The best `depth` documents of each query, best first; see `TextSearch`."""
        if not len(queries):
            return []
        vectors, readings = self._encode(queries)
        known = [reading.says_something for reading in readings]
        found = iter(self._index.search(vectors[known], depth) if any(known) else ())
        return [next(found) if says_something else [] for says_something in known]

    def read(self, queries: Sequence[str]) -> list[QueryReading]:
        """Evidence of each query in the query tower; see `TextSearch`."""
        return self._encode(queries).readings if len(queries) else []

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into the shares of words; see `TextSearch.explain`."""
        if not hits:
            return []
        tower = self._open_tower(role)
        if role == "query":
            (words,) = tower.token_vectors([query])
            others = self._open_tower("document").encode([hit.text for hit in hits])
            return [explain(words, other, tower.epsilon) for other in others]
        (other,) = self._encode([query]).vectors
        texts = tower.token_vectors([hit.text for hit in hits])
        return [explain(words, other, tower.epsilon) for words in texts]
