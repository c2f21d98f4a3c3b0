"""Exporting a training run: all that it ranks with, and a search model over its collection."""

from __future__ import annotations

import dataclasses
import itertools
import os
from collections.abc import Sequence

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.lexical.translated_queries import TranslatedQueries
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.export_directory import LoadedPart, LoadedTower
from tf_smoothclir.publishing.export_quality import measured_quality, measured_recall, refitted
from tf_smoothclir.publishing.export_search import build_search_model
from tf_smoothclir.publishing.exported_collection import Collection
from tf_smoothclir.publishing.exported_lexical import ExportedLexical, LexicalParts
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.publishing.exported_reranker import ExportedReranker, SecondStage, StageSettings
from tf_smoothclir.publishing.exported_tables import EXACT
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.publishing.exported_vectors import collection_vectors
from tf_smoothclir.publishing.model_card import write_model_card
from tf_smoothclir.publishing.verification import Verifier
from tf_smoothclir.publishing.version_writer import (
    PairInfo,
    Part,
    manifest_in_memory,
    publish_version,
)
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.evidence import word_evidence
from tf_smoothclir.text.subword_encoder import text_encoder
from tf_smoothclir.training.retrievers import load_cut_points, load_models
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import RunModels
from tf_smoothclir.utils.errors import InputError, input_error

# How many texts of each role the warm-up requests and the comparison choose from.
_SAMPLED_TEXTS = 10_000


def export_run(
    run: RunDirectory,
    export_dir: str | os.PathLike,
    *,
    search_model: bool = True,
    max_search_documents: int = 200_000,
    search_depth: int = 10,
    dim: int = 0,
    table_type: str = EXACT,
    vector_type: str = EXACT,
    retriever: str = "",
    verifier: Verifier | None = None,
) -> int:
    """Exports what a run ranks with; towers with the weights of their best epoch."""
    models, cut_points = load_models(run, dim), None
    if retriever:
        models = models.only(retriever)
    settings = models.settings
    _check_types(run, settings, search_model, table_type, vector_type)
    if settings.retrieval.retriever == "hybrid" and models.fusion is None:
        models, cut_points = refitted(run, models)
    towers, lexical = _towers(run, models, table_type), _lexical_parts(run, models)
    quality = None
    if table_type != EXACT:
        tables = {role: tower.tables for role, tower in towers.items()}
        quality = measured_quality(run, models, tables)
    info = dataclasses.replace(_pair_info(run, models, cut_points), quality=quality)
    parts: dict[str, Part] = dict(towers)
    if lexical is not None:
        parts["lexical"] = ExportedLexical(lexical)
    if (second_stage := _second_stage(run, models)) is not None:
        parts["reranker"] = ExportedReranker(second_stage)
    try:
        source = source_of(settings.data)
        texts = {
            "query": _sample(text.text for text in source.queries()),
            "document": _sample(text.text for text in source.documents()),
        }
        if search_model and (number := _collection_size(source, max_search_documents)):
            tower, reader = towers.get("document"), lexical and lexical.document_reader
            titles = settings.text.reads_titles
            collection = Collection.read(source.documents, number, tower, reader, titles=titles)
            vectors = None
            if vector_type != EXACT:
                vectors = collection_vectors(collection.vectors, vector_type)
                found = measured_recall(
                    vectors, collection.vectors, towers["query"], texts["query"], search_depth
                )
                info = dataclasses.replace(info, vectors=found)
            parts["search"] = build_search_model(
                collection,
                towers,
                lexical,
                vectors=vectors,
                cut_points=info.cut_points,
                depth=search_depth,
            )
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
    narrow = {table_type, vector_type} != {EXACT}
    write_model_card(run, settings, export_dir, version, tuple(parts), narrow)
    return version


def _check_types(
    run: RunDirectory,
    settings: RunSettings,
    search_model: bool,
    table_type: str,
    vector_type: str,
) -> None:
    """Checks that there is something to store as asked."""
    retriever = settings.retrieval.retriever
    for flag, kind in (("table_type", table_type), ("vector_type", vector_type)):
        if kind != EXACT and retriever == "lexical":
            raise input_error(
                f"--{flag}={kind}", f"{run.path} has no towers, and so no vectors", "Leave it out"
            )
    if vector_type != EXACT and not search_model:
        raise input_error(
            f"--vector_type={vector_type}",
            "it is about the search model, and --nosearch_model exports none",
            "Leave one of them out",
        )


def models_of_run(run: RunDirectory) -> tuple[ExportedModels, dict[str, LoadedPart]]:
    """Models that `export_run` would export, in memory; version 0."""
    models = load_models(run)
    towers, lexical = _towers(run, models, EXACT), _lexical_parts(run, models)
    parts: dict[str, Part] = dict(towers)
    if lexical is not None:
        parts["lexical"] = ExportedLexical(lexical)
    if (second_stage := _second_stage(run, models)) is not None:
        parts["reranker"] = ExportedReranker(second_stage)
    manifest = manifest_in_memory(parts, _pair_info(run, models))
    loaded = {role: LoadedPart(tower, manifest) for role, tower in towers.items()}
    encoders = {role: LoadedTower(tower.serve, manifest) for role, tower in towers.items()}
    return ExportedModels(manifest, encoders, lexical, second_stage), loaded


def _pair_info(
    run: RunDirectory, models: RunModels, cut_points: CutPoints | None = None
) -> PairInfo:
    settings, thresholds = models.settings, models.thresholds
    cut_points = cut_points or load_cut_points(run, models)[settings.retrieval.retriever]
    dim, epsilon = 0, 0.0
    if models.towers is not None:
        dim, epsilon = settings.model.dim, settings.model.epsilon
    return PairInfo(dim, epsilon, thresholds, settings.data, cut_points)


def _towers(run: RunDirectory, models: RunModels, table_type: str) -> dict[str, ExportedTower]:
    if models.towers is None:
        return {}
    settings, towers = models.settings, {}
    for role in ROLES:
        vocabulary = run.vocabulary / f"{role}.txt"
        encoder = text_encoder(vocabulary, settings.text, role)
        asked = role == "query"
        towers[role] = ExportedTower(
            getattr(models.towers, f"{role}_tower"),
            encoder,
            epsilon=settings.model.epsilon,
            name=f"{role}_tower",
            table_type=table_type,
            evidence=word_evidence(vocabulary, encoder, settings.text) if asked else None,
        )
    return towers


def _lexical_parts(run: RunDirectory, models: RunModels) -> LexicalParts | None:
    if models.lexical is None:
        return None
    if isinstance(models.lexical, TranslatedQueries):
        raise input_error(
            run.path,
            f"a run with --ranker={models.lexical.name} cannot be exported",
            "Train with --ranker=psq, which is better too",
        )
    return LexicalParts(models.lexical, run.vocabulary, models.settings.text, models.fusion)


def _second_stage(run: RunDirectory, models: RunModels) -> SecondStage | None:
    """The re-ranker; None where there is none, or none that counts."""
    if models.reranker is None or not models.reranker.weight:
        return None
    retrieval, text = models.settings.retrieval, models.settings.text
    cut_points = load_cut_points(run, models)[retrieval.ranks_with]
    settings = StageSettings(retrieval.rerank_depth, cut_points)
    choices = models.reranker.choices
    reranker = models.reranker.chosen(  # the texts of the run may be shorter than what it can read
        query_length=min(choices.query_length, text.max_query_tokens),
        document_length=min(choices.document_length, text.max_document_tokens),
    )
    return SecondStage(reranker, run.vocabulary, settings)


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
