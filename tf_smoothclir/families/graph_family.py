"""Families that a graph of TensorFlow can rank by: towers, a lexical model, or both."""

from __future__ import annotations

from tf_smoothclir.families.family import Family


class GraphFamily(Family):
    """Family whose search model has what is published of towers and of a lexical model."""

    def search_model(self, publication, searched):
        from tf_smoothclir.publishing.export_search import search_model_of

        towers = publication.published.get("dense")
        return search_model_of(
            {} if towers is None else {role: towers.load(role) for role in ("query", "document")},
            publication.published.get("lexical"),
            searched,
        )
