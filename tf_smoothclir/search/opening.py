"""Opening the search of an export; an index that is missing is built first."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.engines.milvus import Address, CollectionNote
from tf_smoothclir.engines.milvus_collection import MilvusCollection
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import SourceCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.encoding import encode_texts
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.protocols.text_search import SearchedCollection, TextSearch
from tf_smoothclir.publishing.export_directory import (
    LoadedPart,
    exported_versions,
    load_part,
    load_tower,
    part_dir,
)
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair, check_pair_id
from tf_smoothclir.search.dense_search import DenseSearch, EncodeQueries
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError, input_error

ChooseData = Callable[[DataSettings], DataSettings]


def open_search(
    export_dir: str | os.PathLike,
    index_dir: str | os.PathLike,
    choose_data: ChooseData,
    *,
    server: str = "",
    engine: Address | None = None,
) -> TextSearch:
    """Opens the search of an export; builds its index if there is none.

    An existing index is used as it is, because it holds its documents. If its collection has
    changed since, this logs a warning. Asking for another collection is an error.

    Args:
        export_dir: Where the towers are.
        index_dir: Where the index is; empty for `index` in `export_dir`.
        choose_data: From the data settings of the training run, or of the index, to those of the
            collection.
        server: Address of a model server with the query tower; empty for the one in `export_dir`.
        engine: Where the collection is, if it is in an engine; no index is used or built then.

    Raises:
        InputError: The towers are missing or changed, or towers and index come from different
            runs.
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
        _check_collection(index_dir, index.manifest, choose_data)
    encode = _remote(server, index.manifest) if server else _local(export_dir, index.manifest)
    load = functools.partial(_tower_of_index, export_dir, index.manifest.version)
    return DenseSearch(encode, index, load, _searched(export_dir, index.manifest, choose_data))


def _searched(
    export_dir: str | os.PathLike,
    manifest: IndexManifest | CollectionNote,
    choose_data: ChooseData,
) -> SearchedCollection:
    """Describes the collection of an index; files of documents are in the towers' languages."""
    data = choose_data(manifest.data or _data_of_towers(export_dir))
    return SearchedCollection(
        query_language=data.query_language,
        document_language=data.document_language,
        num_grades=len(manifest.thresholds) + 1,
        data=data if manifest.data else None,
    )


def _data_of_towers(export_dir: str | os.PathLike) -> DataSettings:
    """Returns the set that the towers were trained on; the default one without towers."""
    versions = exported_versions(export_dir, "document")
    if not versions:  # a model server has them
        return DataSettings()
    latest = part_dir(export_dir, "document") / str(versions[-1])
    return ExportManifest.read(latest, ["document"]).data


def _tower_of_index(export_dir: str | os.PathLike, version: int, role: str) -> LoadedPart:
    """Loads the tower that the index was built with, even if there is a later version."""
    there = version in exported_versions(export_dir, role)
    return load_part(export_dir, role, version if there else None)


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
    encode, tower = load_tower(export_dir, "query")
    check_pair(tower, manifest)
    return functools.partial(encode_texts, encode)


def _remote(server: str, manifest: IndexManifest | CollectionNote) -> EncodeQueries:
    from tf_smoothclir.client.serving_client import ServingClient

    client = ServingClient(server)
    pair_id = client.pair_id("query")
    if pair_id is not None:
        check_pair_id(f"query tower of {server}", pair_id, manifest)
    return client.encode
