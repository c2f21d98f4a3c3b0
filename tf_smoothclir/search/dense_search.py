"""Dense search: the query tower, here or in a model server, and an index of vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.engines.milvus_collection import MilvusCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.protocols.text_search import (
    Explanation,
    QueryReading,
    SearchedCollection,
    SearchHit,
)
from tf_smoothclir.publishing.export_directory import LoadedPart
from tf_smoothclir.publishing.manifest import check_pair
from tf_smoothclir.search.explanation import explain, word_vectors
from tf_smoothclir.search.query_reading import EncodeQueries

LoadTower = Callable[[str], LoadedPart]


class DenseSearch:
    """A `TextSearch` by inner products of vectors.

    Attributes:
        collection: What is searched.
    """

    def __init__(
        self,
        encode_queries: EncodeQueries,
        index: DocumentIndex | MilvusCollection,
        load_tower: LoadTower,
        collection: SearchedCollection,
    ):
        """Joins an encoder of queries and an index.

        Args:
            encode_queries: From queries to vectors, and what the query tower knows of them.
            index: Of the same training run.
            load_tower: From "query" or "document" to the exported tower. Only `explain` calls it.
            collection: What is known about the documents of the index.
        """
        self.collection = collection
        self._encode = encode_queries
        self._index = index
        self._load_tower = functools.lru_cache(load_tower)

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """Returns the best `depth` documents of each query, best first; see `TextSearch`."""
        if not len(queries):
            return []
        vectors, readings = self._encode(queries)
        known = [reading.says_something for reading in readings]
        found = iter(self._index.search(vectors[known], depth) if any(known) else ())
        return [next(found) if says_something else [] for says_something in known]

    def read(self, queries: Sequence[str]) -> list[QueryReading]:
        """Returns what the query tower knows of each query; see `TextSearch`."""
        return self._encode(queries).readings if len(queries) else []

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into the shares of words; see `TextSearch.explain`.

        Raises:
            InputError: The towers are missing, come from another run, or do not pool averages.
        """
        models = {}
        for name in ROLES:
            models[name], manifest = self._load_tower(name)
            check_pair(manifest, self._index.manifest)
        texts = {"query": [query] * len(hits), "document": [hit.text for hit in hits]}
        other = next(name for name in ROLES if name != role)
        vectors = encode_texts(models[other].signatures["serving_default"], texts[other])
        words = word_vectors(models[role], texts[role])
        return [explain(word, vector, manifest.epsilon) for word, vector in zip(words, vectors)]
