"""Building the search model of whatever a run ranks with."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.lexical.feedback import tf_idf
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.exported_collection import Collection
from tf_smoothclir.publishing.exported_feedback import ExportedFeedback
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_scorers import DenseScorer, FusedScorer, LexicalScorer
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.search_model import GraphScorer, SearchModel
from tf_smoothclir.text.evidence import Evidence


def build_search_model(
    collection: Collection,
    towers: dict[str, ExportedTower],
    lexical: LexicalParts | None,
    *,
    cut_points: CutPoints,
    depth: int,
) -> SearchModel:
    """Combines a collection and what ranks it.

    Args:
        collection: Has vectors if there are towers, and words if there is a lexical model.
        towers: "query" and "document" -> tower; empty for a lexical model alone.
        lexical: None for towers alone.
        cut_points: Scores at which the grade changes.
        depth: Documents per query; fewer if the collection is smaller.
    """
    feedback = None
    if lexical is not None and lexical.feedback:
        feedback = ExportedFeedback(tf_idf(collection.words.matrix()), lexical.feedback)
    return SearchModel(
        collection.ids,
        _scorer(collection, towers, lexical),
        cut_points=cut_points,
        depth=depth,
        evidence=QueryEvidence(towers, lexical),
        feedback=feedback,
    )


class QueryEvidence(tf.Module):
    """What all that ranks knows of queries; in the graph."""

    def __init__(self, towers: dict[str, ExportedTower], lexical: LexicalParts | None):
        """Takes what ranks, as `build_search_model` does."""
        super().__init__(name="evidence")
        self._of_words = lexical and lexical.query_reader
        of_vectors = lexical is None or (lexical.fusion is not None and lexical.fusion.weights[1])
        self._of_tower = towers["query"].evidence if of_vectors else None

    def __call__(self, queries: tf.Tensor) -> Evidence:
        """Returns what is known of queries, `[batch]` string."""
        if self._of_words is None:
            return self._of_tower(queries)
        found = self._of_words.evidence(queries)
        if self._of_tower is None:
            return found
        # What words do not know, n-grams may; both vocabularies tell which words are unknown.
        return found._replace(levels=tf.maximum(found.levels, self._of_tower(queries).levels))


def _scorer(
    collection: Collection, towers: dict[str, ExportedTower], lexical: LexicalParts | None
) -> GraphScorer:
    if lexical is None:
        return DenseScorer(towers, collection.vectors)
    if lexical.fusion is None:
        return LexicalScorer(lexical, collection.words)
    of_lexical, of_dense = lexical.fusion.weights
    return FusedScorer(
        lexical.fusion,
        LexicalScorer(lexical, collection.words) if of_lexical else None,
        DenseScorer(towers, collection.vectors) if of_dense else None,
    )
