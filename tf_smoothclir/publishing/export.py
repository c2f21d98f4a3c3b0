"""Exporting a training run: all that it ranks with, and a search model over its collection."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.plugins import family, used_by
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.export_quality import refitted
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.publishing.manifest import PairInfo
from tf_smoothclir.publishing.model_card import write_model_card
from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.publishing.version_writer import (
    Part,
    manifest_in_memory,
    publish_version,
)
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import RunModels, load_cut_points, load_models
from tf_smoothclir.utils.errors import InputError

# How many texts of each role the warm-up requests and the comparison choose from.
_SAMPLED_TEXTS = 10_000


class Publication:
    """What is published of a run.

    Attributes:
        published: Family -> its published model, parts first.
    """

    def __init__(self, run: RunDirectory, models: RunModels):
        self.run, self.models = run, models
        self.published: dict[str, Any] = {}
        for name in models:
            found = family(name).published(self)
            if found is not None:
                self.published[name] = found

    @property
    def settings(self) -> RunSettings:
        """Settings of what is published, which may be a part of the run."""
        return self.models.settings

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
    retriever: str = "",
    collection: Any = None,
    verifier: Verifier | None = None,
) -> int:
    """Exports what a run ranks with; towers with the weights of their best epoch.

    Args:
        collection: The `documents` of the search model; None for the set of the run.
    """
    models, cut_points = load_models(run, dim), None
    if retriever:
        models = models.only(retriever)
    settings = models.settings
    if None in models.values():
        models, cut_points = refitted(run, models)
    publication = Publication(run, models)
    parts, info = publication.parts(), _pair_info(run, models, cut_points)
    try:
        source = source_of(settings.data)
        texts = {
            "query": _sample(text.text for text in source.queries())
            or _made_up_texts(run.vocabulary_tokens("query")),
            "document": _sample(text.text for text in source.documents()),
        }
        searched = collection or source
        if search_model and (number := _collection_size(searched, max_search_documents)):
            form = {"cut_points": info.cut_points, "depth": search_depth}
            found = family(info.retriever).search_model(publication, searched, number, **form)
            if found is not None:
                parts["search"] = found
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
    version = publish_version(parts, export_dir, info, texts, verifier)
    write_model_card(run, settings, export_dir, version, tuple(parts))
    return version


def models_of_run(run: RunDirectory) -> ExportedModels:
    """Models that `export_run` would export, in memory; version 0."""
    models = load_models(run)
    publication = Publication(run, models)
    manifest = manifest_in_memory(publication.parts(), _pair_info(run, models))
    return ExportedModels(manifest, models=publication.published)


def _pair_info(
    run: RunDirectory, models: RunModels, cut_points: CutPoints | None = None
) -> PairInfo:
    settings, thresholds = models.settings, models.thresholds
    retriever = settings.retrieval.retriever
    cut_points = cut_points or load_cut_points(run, models)[retriever]
    dim, epsilon = 0, 0.0
    if settings.retrieval.with_task:
        dim, epsilon = settings.model.dim, settings.model.epsilon
    plugins = tuple(p.module for p in used_by(settings.values()) if p.kind == "family")
    data = settings.data
    return PairInfo(dim, epsilon, thresholds, data, cut_points, retriever, plugins)


def _sample(texts) -> list[bytes]:
    return [text.encode() for text in itertools.islice(texts, _SAMPLED_TEXTS)]


def _collection_size(source: Source, most: int) -> int:
    """The number of documents; 0 if they are too many."""
    number = sum(1 for _ in itertools.islice(source.documents(), most + 1))
    if number > most:
        logging.info(
            "No search model: the collection has more than %d documents. Index it with"
            " smoothclir-index, or raise --max_search_documents.",
            most,
        )
        return 0
    return number


def _made_up_texts(tokens: Sequence[str]) -> list[bytes]:
    """Texts of 1, 2, 4, ... 128 of the most frequent words."""
    words = list(itertools.islice(itertools.cycle(tokens[2:]), 128))
    return [" ".join(words[: 2**power]).encode() for power in range(8)]
