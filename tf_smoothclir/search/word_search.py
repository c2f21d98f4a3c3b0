"""Search by words, or by words and vectors in one ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.protocols.text_search import Explanation, SearchedCollection, SearchHit
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.search.query_reading import ReadQueries, answered, by_words, without_zeros
from tf_smoothclir.search.rank_fusion import hybrid_ranker
from tf_smoothclir.search.word_explanation import WordExplainer
from tf_smoothclir.search.word_ranker import Query, WordRanker

EncodeQueries = Callable[[Sequence[str]], np.ndarray]
_LEXICAL_ALONE = (1.0, 0.0)


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
        if encode_queries is None:
            self._ranker = WordRanker(index, _LEXICAL_ALONE, lexical.model.feedback)
        else:
            self._ranker = hybrid_ranker(index, lexical.fusion)
        halves = [] if encode_queries is None else [DenseHalf.name]
        self._cut_points = index.manifest.cut_points_of(*halves, LexicalHalf.name)
        self.read = by_words(lexical, read_queries if self._ranker.has_vectors else None)
        self._explainer = WordExplainer(lexical)
        self._latest: tuple[str, Query | None] = "", None

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
        text, read = self._latest
        if text != query or read is None:
            (read,) = self._as_queries([query])
        positions = np.array([self._position(hit.id) for hit in hits])
        parts = self._ranker.parts(read, positions)
        texts = [hit.text for hit in hits]
        return self._explainer.explain(read.words, texts, parts.T, role)

    def _found(self, queries: Sequence[str], depth: int) -> list[list[SearchHit]]:
        ranked = (self._ranker.rank(query, depth) for query in self._as_queries(queries))
        return [self._index.hits(*without_zeros(*own), self._cut_points) for own in ranked]

    def _as_queries(self, queries: Sequence[str]) -> list[Query]:
        if not len(queries):
            return []
        words = self._lexical.query_reader.batch(queries)
        texts = np.split(words.ids, words.offsets[1:-1])
        vectors = [None] * len(queries)
        if self._encode is not None and self._ranker.has_vectors:
            vectors = self._encode(queries)
        found = [Query(*read) for read in zip(texts, vectors)]
        self._latest = queries[-1], found[-1]
        return found

    def _position(self, id_: str) -> int:
        same = np.flatnonzero(self._index.documents.hashes == hash_ids([id_])[0])
        return next(place for place in same if self._index.documents[place].id == id_)
