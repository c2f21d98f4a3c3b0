"""Models of a run, and their retriever."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.hybrid.fusion import Fusion
from tf_smoothclir.interaction.reranker import Reranker
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.protocols.scorer import Retriever
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_checks import check_retriever
from tf_smoothclir.training.set_retrievers import retrievers_over
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import thresholds_of


@dataclasses.dataclass(frozen=True)
class RunModels:
    """The models of a run."""

    settings: RunSettings
    towers: TwoTower | None  # None where there are none
    lexical: LexicalModel | TranslatedQueries | None = None
    # How towers and lexical model are added; None where one of the two ranks alone.
    fusion: Fusion | None = None
    reranker: Reranker | None = None  # orders the first ranks again; None where there is none

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Thresholds of the loss of the towers; without towers, those of the settings."""
        if self.towers is None:
            return self.settings.model.thresholds
        return tuple(thresholds_of(self.settings, self.towers))

    @property
    def seconds(self) -> float:
        """Time spent on learning all but the towers."""
        parts = (self.lexical, self.fusion, self.reranker)
        return sum(part.seconds for part in parts if part is not None)

    def only(self, retriever: str) -> RunModels:
        """Models of `retriever` alone: a half of a hybrid, or all but the re-ranker."""
        check_retriever(self.settings, retriever)
        if retriever == self.settings.retrieval.ranks_with:
            return self
        return RunModels(
            changed(self.settings, {"retriever": retriever, "reranker": "none"}),
            towers=self.towers if retriever != "lexical" else None,
            lexical=self.lexical if retriever != "dense" else None,
            fusion=self.fusion if retriever == "hybrid" else None,
        )

    def retrievers(self, tokenized_set: TokenizedSet) -> dict[str, Retriever]:
        """Name -> retriever over a set: the parts, and last what the run ranks with."""
        over = retrievers_over(self.settings, tokenized_set, self.towers)
        if self.lexical is not None:
            over.add_lexical(self.lexical)
        if self.fusion is not None:
            over.add_hybrid(self.fusion)
        if self.reranker is not None:
            over.add_reranked(self.reranker, self.settings.retrieval, tokenized_set)
        return over.found
