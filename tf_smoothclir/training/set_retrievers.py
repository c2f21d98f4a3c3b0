"""Retrievers of a set, by its models: towers, a lexical model, or both in one ranking."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.interaction.reranker import Reranker
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.retriever import RowRetriever
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.protocols.scorer import Retriever, Scorer, TwoStageRetriever
from tf_smoothclir.settings.retrieval import RetrievalSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import DenseRetriever, SetEncoder


def name_of_cut(dim: int) -> str:
    """The name of the retriever by vectors that are cut to `dim`."""
    return f"dense-{dim}"


def retriever_of_parts(
    retrieval_set: RetrievalSet,
    vectors: Mapping[str, np.ndarray],
    *,
    tokenized_set: TokenizedSet | None = None,
    max_query_tokens: int = 0,
    lexical: LexicalModel | None = None,
    fusion: Fusion | None = None,
) -> Retriever:
    """Retriever of a set by models that may come from an export.

    Args:
        vectors: "query" and "document" -> `[texts, dim]` float32, smooth-normalised, of all texts
            of the set; empty where towers have no weight.
    """
    dense = None
    if vectors:
        dense = DenseRetriever(vectors["query"], vectors["document"], retrieval_set.tie_order)
    if lexical is None:
        return dense
    found: dict[str, Retriever] = {} if dense is None else {"dense": dense}
    over = SetRetrievers(found, LexicalTexts(tokenized_set, max_query_tokens))
    over.add_lexical(lexical)
    if fusion is not None:
        over.add_hybrid(fusion)
    return list(over.found.values())[-1]


def scorer_of_pairs(retriever: Retriever) -> Scorer | None:
    """Scorer of documents without their collection; None where that is `retriever`."""
    if isinstance(retriever, TwoStageRetriever):
        first_stage = scorer_of_pairs(retriever.first_stage)
        return None if first_stage is None else retriever.over(first_stage)
    if isinstance(retriever, RowRetriever) and retriever.needs_collection:
        return retriever.without_collection()
    return None


class SetRetrievers:
    """The retrievers of a run over one set, by name."""

    def __init__(self, found: dict[str, Retriever], texts: LexicalTexts | None):
        self.found = found
        self.texts = texts  # the set as lexical models read it; None where there are none

    def add_lexical(self, model: LexicalModel | TranslatedQueries) -> None:
        """Adds "lexical"."""
        if isinstance(model, TranslatedQueries):
            tie_order = self.texts.retrieval_set.tie_order
            self.found["lexical"] = RowRetriever(model.rows(self.texts), tie_order)
        else:
            self.found["lexical"] = self.texts.retriever(model)

    def add_hybrid(self, fusion: Fusion) -> None:
        """Adds "hybrid", after "lexical"."""
        dense = self.found.get("dense")  # not needed where it has no weight
        halves = self.found["lexical"].rows, dense and dense.scores
        rows = fusion.rows(*halves)
        of_pairs = fusion.of_pairs.rows(*halves) if fusion.by_ranks else None
        self.found["hybrid"] = self.texts.with_feedback(rows, fusion.feedback, of_pairs)

    def add_reranked(
        self, reranker: Reranker, settings: RetrievalSettings, tokenized_set: TokenizedSet
    ) -> None:
        """Adds "reranked": the first ranks of the retriever of the settings, ordered again."""
        self.found[Reranker.name] = TwoStageRetriever(
            self.found[settings.retriever],
            reranker.scorer(reranker.texts(tokenized_set)),
            tokenized_set.retrieval_set,
            ranks=settings.rerank_depth,
            weight=reranker.weight,
        )


def retrievers_over(
    settings: RunSettings, tokenized_set: TokenizedSet, towers: TwoTower | None
) -> SetRetrievers:
    """The retrievers by vectors, of whatever lengths the towers are trained for."""
    found: dict[str, Retriever] = {}
    texts = None
    if towers is not None:
        dense = SetEncoder(towers, tokenized_set)()
        if settings.retrieval.retriever == "dense":
            model = settings.model
            for dim in model.shorter_dims:
                found[name_of_cut(dim)] = dense.cut_to(dim, model.epsilon)
        found["dense"] = dense
    if settings.retrieval.has_lexical_model:
        texts = LexicalTexts(tokenized_set, settings.text.max_query_tokens)
    return SetRetrievers(found, texts)
