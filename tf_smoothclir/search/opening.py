"""Opening the search of an export; an index that is missing is built first."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from absl import logging

from tf_smoothclir.index.document_index import DocumentIndex, IndexManifest, state_of_data
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.protocols.text_search import SearchedCollection
from tf_smoothclir.publishing.export_directory import check_pair, latest_manifest
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.search.text_search import TextSearch
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.retrieval import RERANKED
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.memory import reuse_freed_memory

if TYPE_CHECKING:
    from tf_smoothclir.engines.milvus import Address
    from tf_smoothclir.engines.milvus_collection import MilvusCollection

AUTO = "auto"
ChooseData = Callable[[DataSettings], DataSettings]


def open_search(
    export_dir: str | os.PathLike,
    index_dir: str | os.PathLike,
    choose_data: ChooseData,
    *,
    engine: Address | None = None,
    retriever: str = AUTO,
    filter: str = "",
    version: int | None = None,
) -> TextSearch:
    """Opens the search of an export, for a filter alone; builds its index if there is none."""
    # An existing index is used as it is, because it holds its documents. If its collection
    # has changed since, this logs a warning. Asking for another collection is an error.
    index: DocumentIndex | MilvusCollection
    index_dir = Path(index_dir or Path(export_dir, "index"))
    # Imported where needed: a first answer waits for none of them.
    if engine is not None:
        from tf_smoothclir.engines.milvus_collection import MilvusCollection

        index = MilvusCollection.at(engine)
    elif not index_dir.exists():
        from tf_smoothclir.data.sources.opening import source_of
        from tf_smoothclir.index.builder import build_index, export_halves

        halves, manifest = export_halves(export_dir, version=version)
        data = choose_data(manifest.data)
        logging.info("No index in %s: indexing the documents of the run", index_dir)
        build_index(index_dir, source_of(data), halves, manifest, data=data)
        index = DocumentIndex(index_dir, filter)
    else:
        index = DocumentIndex(index_dir, filter)
        _check_current(export_dir, index_dir, index.manifest, version)
        _check_collection(index_dir, index.manifest, choose_data)
    models = ExportedModels(index.manifest, export_dir, for_search=True)
    data = choose_data(index.manifest.data or latest_manifest(export_dir).data)
    return _opened(models, index, data, retriever)


def search_in(index: DocumentIndex, models: ExportedModels, retriever: str = AUTO) -> TextSearch:
    """The search of an open index by models that are in memory."""
    check_pair(models.manifest, index.manifest)
    return _opened(models, index, index.manifest.data or models.manifest.data, retriever)


def _opened(
    models: ExportedModels,
    index: DocumentIndex | MilvusCollection,
    data: DataSettings,
    retriever: str,
) -> TextSearch:
    """Opens a search; files of documents are in the languages of the models, which `data` has."""
    reuse_freed_memory()
    manifest = index.manifest
    whole, parts = manifest.retriever, with_parts(manifest.retriever)
    last = retriever
    if retriever in (AUTO, RERANKED):  # the weight of a re-ranker belongs to the whole ranking
        last = RERANKED if "reranker" in manifest.parts else whole
        if retriever == RERANKED != last:
            raise _missing(retriever, "the export has no re-ranker that counts")
    elif retriever not in parts:
        lacking = next(name for name in with_parts(retriever) if name not in parts)
        raise _missing(retriever, f"the index has no {family(lacking).half_content or lacking}")
    first = (last, whole) if last == RERANKED else (last,)
    others = (whole, *parts[:-1]) if len(parts) > 1 else ()
    searched = SearchedCollection(
        query_language=data.query_language,
        document_language=data.document_language,
        num_grades=len(manifest.thresholds) + 1,
        data=data if manifest.data else None,
        documents=getattr(manifest, "documents", None),  # an engine's collection changes
        retrievers=tuple(dict.fromkeys([*first, *others])),
    )
    masks = getattr(index, "mask", None)  # an engine filters as it likes
    return TextSearch(searched, family(last).ranker(models, index), masks)


def _missing(retriever: str, reason: str) -> InputError:
    remedy = "Leave the flag out, or export and index a run that has what it needs"
    return input_error(f"--retriever={retriever}", reason, remedy)


def _check_current(
    export_dir: str | os.PathLike, index_dir: Path, manifest: IndexManifest, version: int | None
) -> None:
    """Checks that an index is of the run of a version of an export, else of the latest one."""
    try:
        latest = latest_manifest(export_dir, version)
    except InputError:
        if version is not None:
            raise
        return  # whoever loads the models says so
    if latest.pair_id != manifest.pair_id:
        raise input_error(
            index_dir,
            f"the index is of version {manifest.version} of the export, and version"
            f" {latest.version} comes from a different training run, so their scores are not"
            " comparable",
            f"Give --version={manifest.version} to search as before; or build the index of"
            f" {manifest.collection_name} again with smoothclir-index --overwrite, and the flags"
            " that it was built with",
        )


def _check_collection(index_dir: Path, manifest: IndexManifest, choose_data: ChooseData) -> None:
    base = manifest.data or DataSettings()
    data = choose_data(base)
    remedy = "build it with smoothclir-index --overwrite, or choose another --index_dir"
    if data == base and manifest.state in ("", state_of_data(data)):
        return  # no flag asks for another collection, and there are no files, or the same
    from tf_smoothclir.data.sources.opening import source_of

    is_named = manifest.data or data.data_dir or data.tfds_name or data.ir_dataset
    try:  # an index of files is not of the toy world
        same = bool(is_named) and source_of(data).fingerprint() == manifest.fingerprint
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
            f"The collection {manifest.collection_name} has changed since it was indexed; for its"
            " new state, run smoothclir-index --update."
        )
