"""Exporting a training run: all that it ranks with, and a search model over its collection."""

import itertools
import os
from collections.abc import Sequence
from typing import Any

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.evaluation.calibration import calibrated
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.plugins import family, used_by
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.publishing.model_card import write_model_card
from tf_smoothclir.publishing.server_config import write_server_config
from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.publishing.version_writer import Part, manifest_in_memory, publish_version
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet, RunModels, load_cut_points, load_models
from tf_smoothclir.training.short_queries import hits_of_short_queries
from tf_smoothclir.utils.errors import InputError

# How many texts of each role the warm-up requests and the comparison choose from.
_SAMPLED_TEXTS = 10_000
_SPLIT, _METRICS = "validation", ("full/MRR@10", "NDCG@5", "P_mr@1")  # that cut vectors log


class Publication:
    """What is published of a run: family -> model; settings with vectors as published."""

    def __init__(self, run: RunDirectory, models: RunModels):
        self.run, self.models, self.settings = run, models, models.settings
        self.published: dict[str, Any] = {}
        for name in models:
            model = family(name).published(self)
            if model is not None:
                self.published[name] = model

    def parts(self) -> dict[str, Part]:
        """Role -> part of an export."""
        parts: dict[str, Part] = {}
        for name, published in self.published.items():
            parts.update(family(name).exported_parts(published, parts))
        return parts


def export_run(
    run: RunDirectory,
    export_dir: str | os.PathLike,
    *,
    search_model: bool = True,
    max_search_documents: int = 200_000,
    search_depth: int = 10,
    dim: int = 0,
    collection: Any = None,
    verifier: Verifier | None = None,
) -> int:
    """Exports what a run ranks with, a search model over `collection` too; the version."""
    models, cut_points = load_models(run, dim), None
    if None in models.values():
        models, cut_points = _refitted(run, models)
    publication = Publication(run, models)
    parts, facts = publication.parts(), _facts(run, models, cut_points)
    try:
        source = source_of(models.settings.data)
        texts = {
            "query": _sample(text.text for text in source.queries())
            or _made_up_texts(run.vocabulary_tokens("query")),
            "document": _sample(text.text for text in source.documents()),
        }
        searched = collection or source
        if search_model and _is_small(searched, max_search_documents):
            form = {"cut_points": facts["cut_points"], "depth": search_depth}
            ranking = family(facts["retriever"])
            model = ranking.search_model(publication, searched, **form)
            if model is not None:
                parts["search"] = model
    except InputError as error:
        if search_model:
            raise InputError(
                f"{error} The search model needs the data of the run; give --nosearch_model to"
                " export without it."
            ) from error
        logging.warning(
            "%s Making the warm-up requests from the vocabulary instead of real texts.", error
        )
        texts = {role: _made_up_texts(run.vocabulary_tokens(role)) for role in ROLES}
    version = publish_version(parts, export_dir, facts, texts, verifier, run.trained_queries)
    write_model_card(run, models.settings, export_dir, version, tuple(parts))
    write_server_config(export_dir, parts, version)
    return version


def models_of_run(run: RunDirectory) -> ExportedModels:
    """Models that `export_run` would export, in memory; version 0."""
    models = load_models(run)
    publication = Publication(run, models)
    manifest = manifest_in_memory(publication.parts(), _facts(run, models))
    return ExportedModels(
        manifest, models=publication.published, trained_queries=run.trained_queries
    )


def _refitted(run: RunDirectory, models: RunModels) -> tuple[RunModels, CutPoints]:
    """Chooses again what cut vectors need; logs the metrics on the validation queries."""
    settings = models.settings
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, (_SPLIT,))
    over, name = ModelsOverSet(settings, tokenized_set, models), settings.retrieval.retriever
    models = RunModels(settings, over.models)
    negatives = settings.training.negatives
    evaluation = evaluate_split(
        over.retrieval_set, over.retrievers[name], _SPLIT, negatives=negatives
    )
    logging.info(
        "With vectors of %d numbers: %s; %s queries: %s",
        settings.model.dim,
        models[name],
        _SPLIT,
        ", ".join(f"{metric} {evaluation.metrics[metric]:.4f}" for metric in _METRICS),
    )
    return models, calibrated(evaluation, hits_of_short_queries(over)[name])


def _facts(
    run: RunDirectory, models: RunModels, cut_points: CutPoints | None = None
) -> dict[str, Any]:
    """What all manifests of a version say of the run."""
    settings = models.settings
    retriever, with_towers = settings.retrieval.retriever, bool(settings.retrieval.with_task)
    return {
        "dim": settings.model.dim if with_towers else 0,
        "epsilon": settings.model.epsilon if with_towers else 0.0,
        "thresholds": models.thresholds,
        "data": settings.data,
        "cut_points": cut_points or load_cut_points(run, models)[retriever],
        "retriever": retriever,
        "plugins": tuple(p.module for p in used_by(settings.values()) if p.kind == "family"),
    }


def _sample(texts) -> list[bytes]:
    return [text.encode() for text in itertools.islice(texts, _SAMPLED_TEXTS)]


def _is_small(source: Source, most: int) -> bool:
    """Whether there are so many documents at most."""
    size = sum(1 for _ in itertools.islice(source.documents(), most + 1))
    if size > most:
        logging.info(
            "No search model: the collection has more than %d documents. Index it with"
            " smoothclir-index, or raise --max_search_documents.",
            most,
        )
    return 0 < size <= most


def _made_up_texts(tokens: Sequence[str]) -> list[bytes]:
    """Texts of 1, 2, 4, ... 128 of the most frequent words."""
    words = list(itertools.islice(itertools.cycle(tokens[2:]), 128))
    return [" ".join(words[: 2**power]).encode() for power in range(8)]
