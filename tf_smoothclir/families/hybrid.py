"""Towers and a translation table in one ranking; `hybrid.fusion` has the formulas."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from tf_smoothclir.families.family import Family
from tf_smoothclir.families.lexical import explained_words, published_texts, texts_of, word_ranker
from tf_smoothclir.plugins import family

_ENOUGH_QUERIES = 100


class Hybrid(Family):
    """A `Fusion` of dense and lexical, which is published with the lexical model.

    Attributes:
        vectors: The part that ranks by vectors.
    """

    vectors = "dense"
    parts = ("dense", "lexical")
    has_graph = True
    ranks_by = "two towers and a translation table in one ranking"
    missing = "has not chosen the weights of its hybrid yet"

    def path(self, run):
        return run.fusion

    def learn(self, over):
        from tf_smoothclir.hybrid.fusion import FORMULAS
        from tf_smoothclir.hybrid.learning import learn_fusion

        wanted = over.settings.retrieval.fusion
        formulas = FORMULAS if wanted == "auto" else (wanted,)
        halves = over.retrievers["lexical"].rows, over.retrievers[self.vectors].scores
        return learn_fusion(texts_of(over), *halves, formulas)

    def look(self, over):
        from tf_smoothclir.hybrid.learning import may_count

        if not self._can_tell(over):
            return None
        texts, lexical = texts_of(over), over.retrievers["lexical"].rows
        feedback = over.models["lexical"].feedback

        def look(dense):
            counts = may_count(texts, lexical, dense.scores, feedback=feedback)
            return "" if counts else "lexical"

        return look

    def ranks_alone(self, over):
        counts = over.models[self.name].share or not self._can_tell(over)
        return "" if counts else "lexical"

    def _can_tell(self, over) -> bool:
        """Whether there is enough to tell that towers are of no use; a re-ranker reads theirs."""
        queries, retrieval = over.retrieval_set.queries_in("validation"), over.settings.retrieval
        is_trained = retrieval.with_task == self.vectors  # else there is no time to save
        return is_trained and retrieval.reranker == "none" and len(queries) >= _ENOUGH_QUERIES

    def save(self, model, path):
        model.save(path)

    def load(self, run, settings):
        from tf_smoothclir.hybrid.fusion import Fusion

        # The share of the towers was chosen for the whole vectors; shorter ones know less.
        is_cut = settings.model.dim != run.settings().model.dim
        return None if is_cut else Fusion.load(self.path(run))

    def retrievers(self, model, over):
        return {self.name: self._fused(model, texts_of(over), over.retrievers)}

    def title(self, model):
        return ""

    def metrics(self, model):
        return {self.name: dataclasses.asdict(model)}

    def facts(self, model, settings, training):
        return {"chosen on validation for the hybrid": str(model)}

    def published(self, publication):
        fusion = publication.models[self.name]
        fused = dataclasses.replace(publication.published["lexical"], fusion=fusion)
        publication.published["lexical"] = fused
        return fused

    def exported_parts(self, published, others):
        return {}

    def exported(self, models):
        return models["lexical"]

    def scores(self, models, queries, documents):
        return sum(self._parts_of_scores(models, queries, documents))

    def explanation(self, models, query, document, role):
        added = self._parts_of_scores(models, [query], [document])
        return explained_words(models[self.name], query, document, role, *added)

    def _parts_of_scores(self, models, queries, documents) -> list[np.ndarray]:
        """Shares of words and of towers in scores, `[pairs]` float32 each."""
        weights = zip(("lexical", self.vectors), models[self.name].fusion.of_pairs.weights)
        return [
            np.float32(weight) * family(name).scores(models, queries, documents)
            if weight
            else np.zeros(len(queries), np.float32)
            for name, weight in weights
        ]

    def retriever_over(self, models, retrieval_set):
        parts = models[self.name]
        texts = published_texts(parts, models, retrieval_set)
        retrievers = {"lexical": texts.retriever(parts.model)}
        if parts.fusion.weights[1]:
            retrievers[self.vectors] = family(self.vectors).retriever_over(models, retrieval_set)
        return self._fused(parts.fusion, texts, retrievers)

    def ranker(self, models, index):
        read = models[self.vectors].read_queries()
        return word_ranker(self.name, models[self.name], index, read, self.vectors)

    def _fused(self, fusion: Any, texts: Any, retrievers: Any) -> Any:
        """Retriever by a fusion of others; vectors are not needed where they have no weight."""
        dense = retrievers.get(self.vectors)
        halves = retrievers["lexical"].rows, dense and dense.scores
        return texts.with_feedback(fusion.rows(*halves), fusion.feedback)
