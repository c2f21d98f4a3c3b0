"""Building the search model of whatever a run ranks with."""

from __future__ import annotations

from tf_smoothclir.lexical.feedback import tf_idf
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.exported_collection import Collection
from tf_smoothclir.publishing.exported_feedback import ExportedFeedback
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_queries import SearchedQueries
from tf_smoothclir.publishing.exported_scorers import DenseScorer, FusedScorer, LexicalScorer
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.exported_vectors import CollectionVectors, ExactVectors
from tf_smoothclir.publishing.search_model import GraphScorer, SearchModel


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
