"""Search by words, or by words and vectors in one ranking."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.protocols.text_search import Explanation, SearchedCollection, SearchHit
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.dense_search import EncodeQueries
from tf_smoothclir.search.query_reading import ReadQueries, answered, by_words, without_zeros
from tf_smoothclir.search.rank_fusion import ranker_of
from tf_smoothclir.search.word_explanation import WordExplainer
from tf_smoothclir.search.word_ranker import AskedQuery, Query


class WordSearch:
    """A `TextSearch` with a lexical model, and with towers where it has an encoder of queries.

    Attributes:
        collection: What is searched.
        read: See `TextSearch`.
    """

    def __init__(
        self,
        lexical: LexicalParts,
        index: DocumentIndex,
        collection: SearchedCollection,
        encode_queries: EncodeQueries | None = None,
        read_queries: ReadQueries | None = None,
    ):
        """Joins models and an index.

        Args:
            lexical: The exported lexical model; with an encoder, its fusion decides.
            index: Of the same export; has impacts, and vectors for the encoder.
            collection: What is known about the documents of the index.
            encode_queries: From queries to `[queries, dim]`; None to rank by words alone.
            read_queries: Says what the query tower knows of queries; with an encoder only.
        """
        self.collection = collection
        self._lexical, self._index, self._encode = lexical, index, encode_queries
        fusion = lexical.ranking(with_towers=encode_queries is not None)
        self._ranker = ranker_of(index, fusion)
        halves = [] if encode_queries is None else [DenseHalf.name]
        self._cut_points = index.manifest.cut_points_of(*halves, LexicalHalf.name)
        has_vectors = self._ranker.dense is not None
        self.read = by_words(lexical, read_queries if has_vectors else None)
        self._explainer = WordExplainer(lexical)
        self._latest: tuple[str, AskedQuery] | None = None

    def search(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        """Returns the best `depth` documents of each query, best first; see `TextSearch`."""
        readings = self.read(queries) if len(queries) else []
        return answered(queries, readings, lambda asked: self._found(asked, depth))

    def explain(
        self, query: str, hits: Sequence[SearchHit], role: str = "document"
    ) -> list[Explanation]:
        """Splits the score of each hit into words, towers and feedback; see `TextSearch`."""
        if not hits:
            return []
        latest = self._latest
        if latest is None or latest[0] != query:
            latest = query, self._ranker.ask(*self._as_queries([query]))
        asked = latest[1]
        positions = np.array([self._position(hit.id) for hit in hits])
        parts = np.stack(asked.parts(positions), axis=1)
        texts = [hit.text for hit in hits]
        return self._explainer.explain(asked.query.words, texts, parts, role)

    def _found(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        found = []
        for text, query in zip(queries, self._as_queries(queries)):
            asked = self._ranker.ask(query)
            found.append(self._index.hits(*without_zeros(*asked.rank(depth)), self._cut_points))
            self._latest = text, asked  # because hits are explained right after they are found
        return found

    def _as_queries(self, queries: Sequence[str]) -> list[Query]:
        words = self._lexical.query_reader.batch(queries)
        texts = np.split(words.ids, words.offsets[1:-1])
        vectors = [None] * len(queries)
        if self._ranker.dense is not None:
            vectors = self._encode(queries)
        return [Query(*read) for read in zip(texts, vectors)]

    def _position(self, id_: str) -> int:
        same = np.flatnonzero(self._index.documents.hashes == hash_ids([id_])[0])
        return next(place for place in same if self._index.documents[place].id == id_)
