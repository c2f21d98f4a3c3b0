"""Collections that a model searches: that of training, in memory, or an index on disk."""

import os
from pathlib import Path
from typing import Any

from tf_smoothclir.api.given import Texts, texts_and_others
from tf_smoothclir.data.sources.memory import MemorySource, Tokenizer
from tf_smoothclir.data.sources.opening import columns_of, labels_of, source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.index.builder import Half, build_index, halves_of, index_in_memory
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.publishing.export_directory import ExportManifest, latest_manifest
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.search.opening import search_in
from tf_smoothclir.search.text_search import TextSearch
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.retrieval import SEARCHED_BY
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.storage.folder import MANIFEST, state_of_files
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import PathText, local_path


def check_is_export(path: Path, version: int | None = None) -> None:
    """Checks that a directory is one of an export, with a version if one is given."""
    if not path.is_dir():
        raise input_error(f"load: {path}", "there is no such directory", "Check the path")
    try:
        latest_manifest(path, version)
    except InputError as error:
        if version is not None:
            raise
        raise input_error(
            f"load: {path}",
            f"there is neither a run (config.json) nor an export ({error})",
            "Give the output_dir of a training, or the directory of an export",
        ) from None


class Searches:
    """Opens searches of a model."""

    def __init__(self, models: ExportedModels, own_index: Path, tokenizer: Tokenizer | None = None):
        self._models, self._own_index, self._tokenizer = models, own_index, tokenizer
        self._latest: tuple[str, DocumentIndex, dict[str, TextSearch]] | None = None

    def opened(self, documents: Texts | None, index: PathText | None, retriever: str) -> TextSearch:
        """A search; the latest index is kept, whichever retriever ranks."""
        index = None if index is None else os.path.abspath(local_path(index, "search: index"))
        if retriever not in SEARCHED_BY:
            remedy = f"Give one of {', '.join(SEARCHED_BY)}"
            raise input_error(f"retriever={retriever!r}", "there is no such retriever", remedy)
        source = documents_of(documents, self._tokenizer, self._models.manifest.data)
        where = Path(index or self._own_index)
        state = state_of_files(where / MANIFEST) if source is None else source.fingerprint()
        what = f"{where} {state}"  # an update has another manifest
        if self._latest is None or self._latest[0] != what:
            self._latest = what, self._index(source, index), {}
        _, searched, searches = self._latest
        if retriever not in searches:
            searches[retriever] = search_in(searched, self._models, retriever)
        return searches[retriever]

    def build(self, directory: Path, documents: Texts | None, **options: bool) -> Path:
        """Writes an index; see `Model.build_index`."""
        if all(options.values()):
            reason = "the one keeps nothing, the other what has not changed"
            raise input_error(", ".join(options), reason, "Leave one of the two out")
        make_directory(directory.parent, "build_index: directory")
        source = documents_of(documents, self._tokenizer, self._models.manifest.data)
        collection, halves, manifest, data = self._indexed(source)
        build_index(directory, collection, halves, manifest, data, **options)
        return directory

    def _index(self, source: MemorySource | None, index: PathText | None) -> DocumentIndex:
        if index is not None:
            return DocumentIndex(index)
        manifest = self._models.manifest
        if source is None and self._own_index.is_dir():
            built = DocumentIndex(self._own_index)
            if built.manifest.pair_id == manifest.pair_id and built.manifest.data is not None:
                return built
        return index_in_memory(*self._indexed(source))

    def _indexed(
        self, source: Source | None
    ) -> tuple[Any, list[Half], ExportManifest, DataSettings | None]:
        """What an index is built of; None for the documents of training."""
        manifest, halves = self._models.manifest, halves_of(self._models)
        if source is not None:
            return source, halves, manifest, None
        try:
            return source_of(manifest.data), halves, manifest, manifest.data
        except InputError as error:
            raise InputError(
                f"The documents of training cannot be read: {error} Give documents=..., or the"
                " directory of an index as index=..."
            ) from None


def documents_of(
    documents: Texts | None, tokenizer: Tokenizer | None, like: DataSettings
) -> MemorySource | None:
    """Documents that a program has at hand, if any; in columns and a language as in other data."""
    if documents is None:
        return None
    texts, others = texts_and_others(documents, "documents", columns_of(like.columns))
    source = MemorySource([], texts, [], tokenizer=tokenizer)
    source.others, source.document_language = others, labels_of(like)[0]
    return source
