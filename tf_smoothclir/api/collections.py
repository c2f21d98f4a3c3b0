"""Collections that a model searches: that of training, in memory, or an index on disk."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from tf_smoothclir.api.given import Texts, texts_of
from tf_smoothclir.api.keywords import PathText
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.index.builder import build_index
from tf_smoothclir.index.document_collections import Collection, SourceCollection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.export_halves import halves_of
from tf_smoothclir.protocols.text_search import TextSearch
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.search.opening import search_in
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.retrieval import SEARCHED_BY
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import local_path


def published_models(path: Path, run: RunDirectory | None) -> ExportedModels:
    """Models of an export, or those that an export of a run would have."""
    if run is None:
        return load_exported_models(path)
    from tf_smoothclir.publishing.export import models_of_run  # takes a second

    return models_of_run(run)


class Searches:
    """Opens searches of a model; the index of documents in memory lives as long as it does."""

    def __init__(self, models: ExportedModels, own_index: Path):
        self._models, self._own_index = models, own_index
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._latest: tuple[tuple[str, str], TextSearch] | None = None

    def opened(self, documents: Texts | None, index: PathText | None, retriever: str) -> TextSearch:
        """A search; the latest one is kept."""
        index = None if index is None else os.path.abspath(local_path(index))
        if retriever not in SEARCHED_BY:
            remedy = f"Give one of {', '.join(SEARCHED_BY)}"
            raise input_error(f"retriever={retriever!r}", "there is no such retriever", remedy)
        if documents is not None:
            source = _in_memory(documents)
            key = source.fingerprint(), retriever
        else:
            source = None
            key = index or "", retriever
        if self._latest is None or self._latest[0] != key:
            found = self._index(source, index)
            search = search_in(found, self._models, retriever)
            self._latest = key, search
        return self._latest[1]

    def build(self, directory: Path, documents: Texts | None, *, overwrite: bool) -> Path:
        """Writes an index; see `Model.build_index`."""
        make_directory(directory.parent, "build_index: directory")
        manifest = self._models.manifest
        collection: Collection
        data: DataSettings | None = None
        if documents is not None:
            collection = SourceCollection(_in_memory(documents))
        else:
            collection, data = self._of_training(), manifest.data
        halves = halves_of(self._models)
        build_index(directory, collection, halves, manifest, data=data, overwrite=overwrite)
        return directory

    def _index(self, source: MemorySource | None, index: PathText | None) -> DocumentIndex:
        if index is not None:
            return DocumentIndex(index)
        manifest = self._models.manifest
        if source is None and self._own_index.is_dir():
            own = DocumentIndex(self._own_index)
            if own.manifest.pair_id == manifest.pair_id and own.manifest.data is not None:
                return own
        collection = SourceCollection(source) if source is not None else self._of_training()
        self._latest = None  # the index below it is about to go
        self._temporary = tempfile.TemporaryDirectory(prefix="smoothclir-index-")
        directory = Path(self._temporary.name, "index")
        data = manifest.data if source is None else None
        build_index(directory, collection, halves_of(self._models), manifest, data=data)
        return DocumentIndex(directory)

    def _of_training(self) -> SourceCollection:
        try:
            return SourceCollection(source_of(self._models.manifest.data))
        except InputError as error:
            raise InputError(
                f"The documents of training cannot be read: {error} Give documents=..., or the"
                " directory of an index as index=..."
            ) from None


def _in_memory(documents: Texts) -> MemorySource:
    return MemorySource([], texts_of(documents, "documents"), [])
