"""The search model of whatever a run ranks with, over the collection of the run."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.lexical.feedback import tf_idf
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.export_quality import measured_recall
from tf_smoothclir.publishing.exported_collection import Collection
from tf_smoothclir.publishing.exported_feedback import ExportedFeedback
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_queries import SearchedQueries
from tf_smoothclir.publishing.exported_scorers import DenseScorer, FusedScorer, LexicalScorer
from tf_smoothclir.publishing.exported_tables import EXACT
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.exported_vectors import (
    CollectionVectors,
    ExactVectors,
    collection_vectors,
)
from tf_smoothclir.publishing.manifest import VectorQuality
from tf_smoothclir.publishing.search_model import GraphScorer, SearchModel


@dataclasses.dataclass(frozen=True)
class SearchedSource:
    """What a search model is made for, and how.

    Attributes:
        documents: Size of the collection of `source`.
        queries: Some queries, to measure the recall with.
        vector_type: How it holds vectors.
        depth: Documents that it returns per query.
    """

    source: Source
    documents: int
    queries: Sequence[bytes]
    vector_type: str
    cut_points: CutPoints
    depth: int


def search_model_of(
    towers: dict[str, ExportedTower], lexical: LexicalParts | None, searched: SearchedSource
) -> tuple[SearchModel, VectorQuality | None]:
    """Encodes a collection; returns its search model, and what narrow vectors cost."""
    reader, documents = lexical and lexical.document_reader, searched.source.documents
    titles = lexical is not None and lexical.text.reads_titles
    tower = towers.get("document")
    collection = Collection.read(documents, searched.documents, tower, reader, titles=titles)
    vectors = quality = None
    if searched.vector_type != EXACT:
        exact = collection.vectors
        vectors = collection_vectors(exact, searched.vector_type)
        tower, depth = towers["query"], searched.depth
        quality = measured_recall(vectors, exact, tower, searched.queries, depth)
    options = {"vectors": vectors, "cut_points": searched.cut_points, "depth": searched.depth}
    return build_search_model(collection, towers, lexical, **options), quality


def build_search_model(
    collection: Collection,
    towers: dict[str, ExportedTower],
    lexical: LexicalParts | None,
    *,
    vectors: CollectionVectors | None = None,
    cut_points: CutPoints,
    depth: int,
) -> SearchModel:
    """Combines a collection and what ranks it."""
    feedback = None
    if lexical is not None and lexical.feedback:
        feedback = ExportedFeedback(tf_idf(collection.words.matrix()), lexical.feedback)
    of_vectors = lexical is None or (lexical.fusion is not None and lexical.fusion.weights[1])
    return SearchModel(
        collection.ids,
        _scorer(collection, towers, lexical, vectors),
        cut_points=cut_points,
        depth=depth,
        read=SearchedQueries(towers["query"] if of_vectors else None, lexical),
        feedback=feedback,
    )


def _scorer(
    collection: Collection,
    towers: dict[str, ExportedTower],
    lexical: LexicalParts | None,
    vectors: CollectionVectors | None,
) -> GraphScorer:
    def dense() -> DenseScorer:
        return DenseScorer(towers, vectors or ExactVectors(collection.vectors))

    if lexical is None:
        return dense()
    if lexical.fusion is None:
        return LexicalScorer(lexical, collection.words)
    of_lexical, of_dense = lexical.fusion.weights
    return FusedScorer(
        lexical.fusion,
        LexicalScorer(lexical, collection.words) if of_lexical else None,
        dense() if of_dense else None,
    )
