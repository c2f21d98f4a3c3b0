"""Opening the search of an export; an index that is missing is built first."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.engines.milvus import Address, CollectionNote
from tf_smoothclir.engines.milvus_collection import MilvusCollection
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.dense_half import DenseHalf
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.index.lexical_half import LexicalHalf
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.protocols.text_search import SearchedCollection, TextSearch
from tf_smoothclir.publishing.export_directory import (
    LoadedPart,
    checked_part,
    exported_versions,
    latest_manifest,
    load_model,
)
from tf_smoothclir.publishing.exported_lexical import LexicalParts, load_lexical
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.publishing.manifest import check_pair, check_pair_id
from tf_smoothclir.search.dense_search import DenseSearch
from tf_smoothclir.search.engine_search import EngineSearch
from tf_smoothclir.search.explanation import ExplainedTower, SavedTower
from tf_smoothclir.search.index_halves import (
    RERANKED,
    check_halves,
    missing,
    one_half_alone,
    ranked_by,
)
from tf_smoothclir.search.outdated import check_current
from tf_smoothclir.search.query_reading import EncodeQueries, by_encoder, by_server, by_tower
from tf_smoothclir.search.word_search import WordSearch
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError, input_error

if TYPE_CHECKING:  # importing it takes seconds
    from tf_smoothclir.publishing.exported_reranker import SecondStage

AUTO, RERANKER = "auto", "reranker"  # the latter is a part of an export
ChooseData = Callable[[DataSettings], DataSettings]


def open_search(
    export_dir: str | os.PathLike,
    index_dir: str | os.PathLike,
    choose_data: ChooseData,
    *,
    server: str = "",
    engine: Address | None = None,
    retriever: str = AUTO,
) -> TextSearch:
    """Opens the search of an export; builds its index if there is none.

    An existing index is used as it is, because it holds its documents. If its collection has
    changed since, this logs a warning. Asking for another collection is an error.
    """
    index: DocumentIndex | MilvusCollection
    index_dir = Path(index_dir or Path(export_dir, "index"))
    if engine is not None:
        index = MilvusCollection.at(engine)
    elif not index_dir.exists():
        halves, manifest = export_halves(export_dir)
        data = choose_data(manifest.data)
        build_index(index_dir, SourceCollection(source_of(data)), halves, manifest, data=data)
        index = DocumentIndex(index_dir)
    else:
        index = DocumentIndex(index_dir)
        if not server:  # which may serve earlier models
            check_current(export_dir, index_dir, index.manifest)
        _check_collection(index_dir, index.manifest, choose_data)
    first = AUTO if retriever == RERANKED else retriever
    search = _open_first_stage(export_dir, index, choose_data, server, first)
    if retriever not in (AUTO, RERANKED):
        return search
    stage = _second_stage(export_dir, index.manifest, retriever)
    if stage is not None and server:
        logging.info("%s encodes queries; the re-ranker is that in %s.", server, export_dir)
    return _in_two_stages(search, stage, retriever)


def _second_stage(
    export_dir: str | os.PathLike, manifest: IndexManifest | CollectionNote, retriever: str
) -> SecondStage | None:
    """Loads the re-ranker of the export that an index was built with; None if none is to rank."""
    stage, parts = None, manifest.parts
    if manifest.version in exported_versions(export_dir, RERANKER):
        from tf_smoothclir.publishing.exported_reranker import load_second_stage

        stage, export = load_second_stage(export_dir, manifest.version)
        check_pair(export, manifest)
        parts = export.parts
    if one_half_alone(parts, manifest, retriever) or RERANKER not in parts:
        return None
    if stage is None:
        raise input_error(
            Path(export_dir, RERANKER, str(manifest.version)),
            "the index is of an export with a re-ranker, which is not there",
            "Copy all of the export, or give --retriever=dense, lexical or hybrid to rank without",
        )
    return stage


def _open_first_stage(
    export_dir: str | os.PathLike,
    index: DocumentIndex | MilvusCollection,
    choose_data: ChooseData,
    server: str,
    retriever: str,
) -> TextSearch:
    word_search = WordSearch if isinstance(index, DocumentIndex) else EngineSearch
    lexical = _lexical_model(export_dir, index, retriever)
    if retriever == AUTO:
        whole = "dense" if lexical is None else lexical.retriever
        retriever = ranked_by(whole, index.manifest)
    searched = _searched(export_dir, index.manifest, choose_data, retriever)
    if retriever == "lexical":
        if server:
            reason = "a lexical search reads its queries in this process"
            raise input_error(f"--server={server}", reason, "Leave the flag out")
        return word_search(lexical, index, searched)
    check_halves(retriever, index.manifest)
    encode = _remote(server, index.manifest) if server else _local(export_dir, index.manifest)
    if retriever == "hybrid":
        return word_search(lexical, index, searched, encode)
    of_index = functools.partial(_tower_of_index, export_dir, index.manifest)
    return DenseSearch(encode, index, of_index, searched)


def search_in(
    index: DocumentIndex,
    models: ExportedModels,
    load_tower: Callable[[str], LoadedPart],
    retriever: str = AUTO,
) -> TextSearch:
    """The search of an open index by models that are in memory."""
    check_pair(models.manifest, index.manifest)
    data = index.manifest.data or models.manifest.data
    searched = SearchedCollection(
        query_language=data.query_language,
        document_language=data.document_language,
        num_grades=len(index.manifest.thresholds) + 1,
        data=index.manifest.data,
    )
    if retriever in (AUTO, RERANKED):
        whole = ranked_by(models.retriever, index.manifest)
        first = search_in(index, models, load_tower, whole)
        alone = one_half_alone(models.manifest.parts, index.manifest, retriever)
        return _in_two_stages(first, None if alone else models.second_stage, retriever)
    if retriever != "dense" and models.lexical is None:
        raise missing(retriever, "the run has no translation table")
    no_fusion = retriever == "hybrid" and models.lexical.fusion is None
    if no_fusion or (retriever != "lexical" and not models.towers):
        raise missing(retriever, "the run has no towers")
    check_halves(retriever, index.manifest)
    if retriever == "lexical":
        return WordSearch(models.lexical, index, searched)
    encode = by_tower(load_tower("query").model)
    if retriever == "hybrid":
        return WordSearch(models.lexical, index, searched, encode)

    def open_tower(role: str) -> ExplainedTower:
        model, manifest = load_tower(role)
        return SavedTower(model, manifest.epsilon)

    return DenseSearch(encode, index, open_tower, searched)


def _in_two_stages(first: TextSearch, stage: SecondStage | None, retriever: str) -> TextSearch:
    """A search with its re-ranker; without one, itself."""
    if stage is None and retriever == RERANKED:
        raise missing(retriever, "the export has no re-ranker that counts")
    if stage is None:
        return first
    from tf_smoothclir.search.reranked_search import RerankedSearch  # it takes seconds

    return RerankedSearch(first, stage)


def _lexical_model(
    export_dir: str | os.PathLike, index: DocumentIndex | MilvusCollection, retriever: str
) -> LexicalParts | None:
    """Loads the lexical model that an index was built with; None to rank by vectors alone."""
    has_impacts = LexicalHalf.name in index.manifest.halves
    if retriever == "dense" or (retriever == AUTO and not has_impacts):
        return None
    if not has_impacts:
        check_halves(retriever, index.manifest)
    version = index.manifest.version
    there = version in exported_versions(export_dir, "lexical")
    lexical, manifest = load_lexical(export_dir, version if there else None)
    check_pair(manifest, index.manifest)
    if retriever == "hybrid" and lexical.fusion is None:
        raise missing(retriever, "the exported run has no towers")
    return lexical


def _searched(
    export_dir: str | os.PathLike,
    manifest: IndexManifest | CollectionNote,
    choose_data: ChooseData,
    retriever: str,
) -> SearchedCollection:
    """Describes the collection of an index; files of documents are in the models' languages."""
    data = choose_data(manifest.data or _data_of_export(export_dir))
    halves = {DenseHalf.name, LexicalHalf.name} <= set(manifest.halves)
    others = ("hybrid", "dense", "lexical") if halves else ()
    return SearchedCollection(
        query_language=data.query_language,
        document_language=data.document_language,
        num_grades=len(manifest.thresholds) + 1,
        data=data if manifest.data else None,
        documents=getattr(manifest, "documents", None),  # an engine's collection changes
        retrievers=tuple(dict.fromkeys([retriever, *others])),
    )


def _data_of_export(export_dir: str | os.PathLike) -> DataSettings:
    """The set that the models were trained on; the default one without models."""
    try:
        return latest_manifest(export_dir).data
    except InputError:  # a model server has them
        return DataSettings()


def _tower_of_index(
    export_dir: str | os.PathLike, manifest: IndexManifest | CollectionNote, role: str
) -> ExplainedTower:
    """Loads the tower that the index was built with, even if there is a later version."""
    there = manifest.version in exported_versions(export_dir, role)
    directory, tower = checked_part(export_dir, role, manifest.version if there else None)
    check_pair(tower, manifest)
    if Encoder.can_load(directory):
        return Encoder.of_version(directory, role, is_checked=True)
    return SavedTower(load_model(directory), tower.epsilon)


def _check_collection(index_dir: Path, manifest: IndexManifest, choose_data: ChooseData) -> None:
    base = manifest.data or DataSettings()
    data = choose_data(base)
    remedy = "build it with smoothclir-index --overwrite, or choose another --index_dir"
    try:
        if manifest.data is None and data == base:
            return  # an index of files, and no flag asks for another collection
        same = source_of(data).fingerprint() == manifest.fingerprint
    except InputError:
        if data != base:
            raise
        return  # the collection is gone, but the index is enough
    if not same and data != base:
        name = manifest.collection_name
        reason = f"the index is of another collection, or of another state of it: {name}"
        raise input_error(index_dir, reason, f"To search this one, {remedy}")
    if not same:
        logging.warning(
            "The collection %s has changed since it was indexed; for its new state, %s.",
            manifest.collection_name,
            remedy,
        )


def _local(
    export_dir: str | os.PathLike, manifest: IndexManifest | CollectionNote
) -> EncodeQueries:
    directory, tower = checked_part(export_dir, "query")
    check_pair(tower, manifest)
    if Encoder.can_load(directory):
        return by_encoder(Encoder.of_version(directory, "query", is_checked=True))
    return by_tower(load_model(directory))


def _remote(server: str, manifest: IndexManifest | CollectionNote) -> EncodeQueries:
    from tf_smoothclir.client.serving_client import ServingClient

    client = ServingClient(server)
    check_pair_id(f"query tower of {server}", client.pair_id("query"), manifest)
    return by_server(client)
