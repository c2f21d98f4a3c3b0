"""Models of a run, family by family: learned once, kept in its directory, loaded from then on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.protocols.scorer import Retriever
from tf_smoothclir.protocols.text_search import CutPoints, read_cut_points
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error


class ModelsOverSet:
    """Models over one set, with their retrievers; a family finds its parts here."""

    # `shared` is what families have made of the set and others may use, by name;
    # `same_documents` are models over a set of the same documents.

    def __init__(
        self,
        settings: RunSettings,
        tokenized_set: TokenizedSet,
        models: Mapping[str, Any] | None = None,
        same_documents: ModelsOverSet | None = None,
    ):
        self.settings, self.tokenized_set = settings, tokenized_set
        self.same_documents = same_documents
        self.models: dict[str, Any] = {}
        self._retrievers: dict[str, Mapping[str, Retriever]] = {}
        self.shared: dict[str, Any] = {}
        for name, model in (models or {}).items():
            self.add(name, model)

    @property
    def retrieval_set(self) -> RetrievalSet:
        """The set."""
        return self.tokenized_set.retrieval_set

    @property
    def retrievers(self) -> dict[str, Retriever]:
        """The retrievers over the set by name, in the order of the families."""
        names = (name for name in self.settings.retrieval.families if name in self._retrievers)
        return {of: one for name in names for of, one in self._retrievers[name].items()}

    @property
    def run_models(self) -> RunModels:
        """The models, parts first."""
        families = self.settings.retrieval.families
        return RunModels(self.settings, {name: self.models[name] for name in families})

    def by_part(self, settings: RunSettings) -> ModelsOverSet:
        """The same by settings with a part of the retriever alone."""
        part = ModelsOverSet(settings, self.tokenized_set)
        families = settings.retrieval.families
        part.models |= {name: self.models[name] for name in families if name in self.models}
        part._retrievers, part.shared = self._retrievers, self.shared
        return part

    def with_queries_of(self, tokenized_set: TokenizedSet) -> ModelsOverSet:
        """The same models over the same documents, with the queries of another set."""
        return ModelsOverSet(self.settings, tokenized_set, self.models, same_documents=self)

    def known_documents(self, name: str) -> np.ndarray | None:
        """`[documents, dim]` float32 by a family with vectors; None if they are to be encoded."""
        same = self.same_documents
        return None if same is None else same.retrievers[name].documents

    def add(self, name: str, model: Any) -> None:
        """Adds a model and its retrievers, after its parts; None is learned from the set."""
        kind = family(name)
        self.models[name] = kind.learn(self) if model is None else model
        self._retrievers[name] = kind.retrievers(self.models[name], self)


class RunModels(dict[str, Any]):
    """The models of a run by family, parts first; None has to be learned again."""

    def __init__(self, settings: RunSettings, models: Mapping[str, Any]):
        super().__init__(models)
        self.settings = settings

    @property
    def thresholds(self) -> tuple[float, ...]:
        """Thresholds of the loss; of families that learn without one, those of the settings."""
        if (name := self.settings.retrieval.with_task) not in self:
            return self.settings.model.thresholds
        return family(name).thresholds(self[name], self.settings)

    @property
    def seconds(self) -> float:
        """Time spent on learning all but what is trained step by step."""
        return sum(getattr(model, "seconds", 0.0) for model in self.values())

    def retrievers(self, tokenized_set: TokenizedSet) -> dict[str, Retriever]:
        """Name -> retriever over a set: the parts, and last what the run ranks with."""
        return ModelsOverSet(self.settings, tokenized_set, self).retrievers


def learn_models(run: RunDirectory, over: ModelsOverSet) -> None:
    """Learns what a run needs besides the models that there are, or loads it, and keeps it."""
    for name in over.settings.retrieval.families:
        if name not in over.models:
            over.add(name, learned(name, run, over))


def learn_what_needs_no_training(run: RunDirectory, over: ModelsOverSet) -> None:
    """Learns the parts of the retriever that need nothing of what is trained step by step."""
    retrieval = over.settings.retrieval
    for name in with_parts(retrieval.retriever):
        if retrieval.with_task not in with_parts(name):
            over.add(name, learned(name, run, over))


def learned(name: str, run: RunDirectory, over: ModelsOverSet) -> Any:
    """Model of a family, learned unless the run has it."""
    kind = family(name)
    path = kind.path(run)
    if not path.exists():
        model = kind.learn(over)
        with run.writing(path) as temporary:
            kind.save(model, temporary)
    return kind.load(run, over.settings)


def load_models(run: RunDirectory, dim: int = 0) -> RunModels:
    """Restores the models of a run; towers with the weights of their best epoch."""
    settings = run.settings()
    check_cut(settings, dim)
    check_trained(run)
    settings = changed(settings, {"dim": dim or settings.model.dim})
    families = settings.retrieval.families
    return RunModels(settings, {name: family(name).load(run, settings) for name in families})


def load_cut_points(run: RunDirectory, models: RunModels) -> dict[str, CutPoints]:
    """The cut points of what a trained run ranks with, and of its parts, by name."""
    if not run.cut_points.is_file():
        raise run.incomplete("has not chosen cut points between its grades yet")
    cut_points, dim = read_cut_points(run.cut_points), models.settings.model.dim
    if dim != run.settings().model.dim:  # those of a hybrid are found with its fusion
        (name, *others) = models
        return {} if others else {name: cut_points[f"{name}-{dim}"]}
    return cut_points


def load_retriever(
    run: RunDirectory, tokenized_set: TokenizedSet, dim: int = 0, retriever: str = ""
) -> tuple[Retriever, CutPoints | None]:
    """What ranks in a trained run, over a set, and its cut points, where any are known."""
    models = load_models(run, dim)
    name = retriever or models.settings.retrieval.ranks_with
    if retriever:
        check_retriever(models.settings, retriever)
    return models.retrievers(tokenized_set)[name], load_cut_points(run, models).get(name)


def check_trained(run: RunDirectory) -> None:
    """Checks that a run has all of its models, before its data are read."""
    for name in run.settings().retrieval.families:
        family(name).check(run)


def check_cut(settings: RunSettings, dim: int) -> None:
    """Checks that the vectors of a run may be cut to their first `dim` numbers; 0 keeps all."""
    reranker, lacks = settings.retrieval.reranker, ""
    if not settings.retrieval.with_task:
        lacks = f"ranks by --retriever={settings.retrieval.retriever}, and has no vectors"
    elif reranker != "none":
        lacks = f"re-ranks by --reranker={reranker}, which was trained on whole vectors"
    if dim and lacks:
        raise input_error(
            f"--dim={dim}",
            f"the run {lacks}",
            "Leave --dim out, or train with --retriever=dense or hybrid and no --reranker",
        )
    possible = (*settings.model.shorter_dims, settings.model.dim)
    if dim and dim not in possible:
        raise input_error(
            f"--dim={dim}",
            f"the run trained vectors of {', '.join(map(str, possible))} numbers",
            "Choose one of these, or train with others in --matryoshka_dims",
        )


def check_retriever(settings: RunSettings, retriever: str) -> None:
    """Checks that a run has what ranks by `retriever`."""
    trained, ranked_by = settings.retrieval.retriever, settings.retrieval.ranks_with
    if retriever == "reranked" != ranked_by:
        raise input_error(
            f"--retriever={retriever}",
            "the run was trained without a re-ranker",
            "Leave the flag out, or train with --reranker=late_interaction",
        )
    if retriever not in (ranked_by, *with_parts(trained)):
        raise input_error(
            f"--retriever={retriever}",
            f"the run ranks with --retriever={trained} and has nothing else to rank by",
            f"Leave the flag out, or train with --retriever={retriever}",
        )
