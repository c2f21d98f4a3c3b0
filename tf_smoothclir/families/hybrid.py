"""Towers, a translation table and a foreign encoder in one ranking, two of them or all three.

`hybrid.fusion` has the formula. What counts for nothing on validation is left out of a run.
"""

import dataclasses
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_smoothclir.families.family import Family
from tf_smoothclir.families.lexical import explained_words, published_texts, texts_of, word_ranker
from tf_smoothclir.hybrid.fusion import Fusion, times_counted
from tf_smoothclir.plugins import FAMILIES, family
from tf_smoothclir.protocols.scorer import ScoreRows
from tf_smoothclir.search.query_reading import by_each

_ENOUGH_QUERIES = 100
_LONG_TRAINING = 20_000  # judged pairs: half a minute or more


class Hybrid(Family):
    """A `Fusion` of its parts, which is published with the lexical model."""

    parts = ("dense", "lexical")
    kept_in = "fusion"
    with_encoder = "hybrid+encoder"
    ranks_by = "two towers and a translation table in one ranking"
    missing = "has not chosen the weights of its hybrid yet"

    def learn(self, over):
        from tf_smoothclir.training.initial_run import initial_run

        if (initial := initial_run(over.settings)) is not None:
            return Fusion.load(self.path(initial))
        return self._learned(over, self.parts)

    def look(self, over):
        from tf_smoothclir.hybrid.learning import may_count

        retrieval_set = over.retrieval_set
        judged = np.isin(retrieval_set.query_rows, retrieval_set.queries_in("train"))
        # What towers of few pairs add shows late.
        if not self._can_tell(over) or np.count_nonzero(judged) < _LONG_TRAINING:
            return None
        others = tuple(part for part in self.parts if part != over.settings.retrieval.with_task)
        alone = _name_of(others)
        if alone == "lexical":
            fusion = Fusion(0.0, 1.0, 1.0, over.models[alone].feedback)
        else:
            fusion = self._learned(over, others)

        model = over.settings.model
        # Random vectors, or layers over vectors, say nothing before they are trained.
        starts_well = model.initial_vectors == "bilingual" and model.tower == "average_pooling"

        def look(make_dense, early):
            if early and not starts_well:
                return ""
            texts = texts_of(over)
            parts = _rows_of({**over.retrievers, "dense": make_dense()}, self.parts, texts)
            return "" if may_count(texts, parts, fusion, early) else alone

        return look

    def ranks_alone(self, over):
        counting = over.models[self.name].parts | {"lexical"}
        left = tuple(part for part in self.parts if part in counting)
        return _name_of(left) if left != self.parts and self._can_tell(over) else ""

    def _can_tell(self, over) -> bool:
        """Whether there is enough to tell what is of no use."""
        # A re-ranker reads what towers say, and the data of an initial run may have needed them.
        queries, settings = over.retrieval_set.queries_in("validation"), over.settings
        is_all = settings.retrieval.reranker == "none" and not settings.training.init_from
        return is_all and len(queries) >= _ENOUGH_QUERIES

    def _learned(self, over, parts: tuple[str, ...]) -> Any:
        from tf_smoothclir.hybrid.learning import learn_fusion

        texts = texts_of(over)
        return learn_fusion(texts, _rows_of(over.retrievers, parts, texts))

    def load(self, run, settings):
        # The shares were chosen for the whole vectors of towers; shorter ones know less.
        is_cut = settings.model.dim != run.settings().model.dim
        return None if is_cut else Fusion.load(self.path(run))

    def retrievers(self, model, over):
        return {self.name: self._fused(model, texts_of(over), over.retrievers)}

    def title(self, model):
        return ""

    def metrics(self, model):
        return {"hybrid": dataclasses.asdict(model)}

    def facts(self, model, settings, training):
        return {"chosen on validation for the hybrid": str(model)}

    def published(self, publication):
        fusion = publication.models[self.name]
        fused = dataclasses.replace(publication.published["lexical"], fusion=fusion)
        publication.published["lexical"] = fused
        return fused

    def exported_parts(self, published, others):
        return {}

    def vectors_in_graph(self, publication):
        names = self._asked(publication.published[self.name].fusion)
        parts = [family(name).vectors_in_graph(publication) for name in names]
        return None if None in parts else dict(ChainMap(*parts))

    def exported(self, models):
        return models["lexical"]

    def scores(self, models, queries, documents):
        return sum(self._parts_of_scores(models, queries, documents))

    def explanation(self, models, query, document, role):
        added = self._parts_of_scores(models, [query], [document])
        return explained_words(models[self.name], query, document, role, *added)

    def _parts_of_scores(self, models, queries, documents) -> list[np.ndarray]:
        """Shares of words, towers and encoder in scores, `[pairs]` float32 each."""
        parts = models[self.name]
        times = times_counted(parts.pairs(queries, documents)[0].matrix().sum(axis=1))
        return [
            np.float32(weight)
            * (1 if name == "lexical" else times)
            * family(name).scores(models, queries, documents)
            if weight
            else np.zeros(len(queries), np.float32)
            for name, weight in parts.fusion.weights.items()
        ]

    def retriever_over(self, models, retrieval_set):
        parts = models[self.name]
        texts = published_texts(parts, models, retrieval_set)
        retrievers = {"lexical": texts.retriever(parts.model)}
        for name in self._asked(parts.fusion):
            retrievers[name] = family(name).retriever_over(models, retrieval_set)
        return self._fused(parts.fusion, texts, retrievers)

    def ranker(self, models, index):
        asked = self._asked(models[self.name].fusion)
        read = by_each([models[name].read_queries() for name in asked])
        return word_ranker(self.name, models[self.name], index, read, asked)

    def _asked(self, fusion: Any) -> list[str]:
        """The parts whose vectors have a weight; others are not even opened."""
        return [name for name in self.parts if name != "lexical" and fusion.weights[name]]

    def _fused(self, fusion: Any, texts: Any, retrievers: Any) -> Any:
        """Retriever by a fusion of others."""
        rows = _rows_of(retrievers, [part for part in self.parts if part in retrievers], texts)
        return texts.with_feedback(fusion.rows(rows), fusion.feedback)


class WithEncoder(Hybrid):
    """A hybrid with a foreign encoder."""

    parts = ("dense", "lexical", "encoder")
    with_encoder = ""
    ranks_by = "two towers, a translation table and a foreign encoder in one ranking"


class TableWithEncoder(WithEncoder):
    """A translation table and a foreign encoder."""

    parts = ("lexical", "encoder")
    ranks_by = "a translation table and a foreign encoder in one ranking"


def _rows_of(retrievers: Mapping[str, Any], parts: Any, texts: Any) -> dict[str, ScoreRows]:
    """Part -> scorer of rows of queries: by words without feedback, by vectors as they count."""

    def by_vectors(scores: ScoreRows) -> ScoreRows:
        return lambda rows: times_counted(texts.known_words(rows))[:, np.newaxis] * scores(rows)

    return {
        part: retrievers[part].rows if part == "lexical" else by_vectors(retrievers[part].scores)
        for part in parts
    }


def _name_of(parts: tuple[str, ...]) -> str:
    """The name of the family with these parts, or of the only part."""
    if len(parts) == 1:
        return parts[0]
    return next(name for name in FAMILIES if FAMILIES.plugin(name).fact("parts") == parts)
