"""Building the index of a collection: in one go, checked as written, put in place in one step."""

import contextlib
import dataclasses
import functools
import itertools
import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.index.document_collections import check_ids
from tf_smoothclir.index.document_index import INDEX, DocumentIndex, IndexManifest, state_of_data
from tf_smoothclir.index.documents import DOCUMENTS, DocumentStore, document_writer
from tf_smoothclir.index.index_kind import AUTO
from tf_smoothclir.index.metadata import METADATA, Metadata, write_metadata
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.publishing.export_directory import ExportManifest, check_pair
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import locked
from tf_smoothclir.storage.folder import MANIFEST, check_kind, new_folder
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.parallel import map_in_threads, text_batches
from tf_smoothclir.utils.progress import progress_bar


class Half(Protocol):
    """Builder of one half of an index.

    Attributes:
        name: The family that it is of; its directory in an index, and its entry in the manifest.
    """

    name: str

    def encode(self, documents: Sequence[Text]) -> Any:
        """A row for each document. Called in several threads."""

    def writer(self, directory: Path) -> contextlib.AbstractContextManager[Callable[[Any], None]]:
        """Opens a new directory for rows; writes what `encode` returned for the next documents."""

    def kept(self, half: Any, positions: np.ndarray, documents: Sequence[Text]) -> Any:
        """What `encode` would return for documents of an opened half; None if it keeps less."""

    def finish(self, directory: Path, documents: DocumentStore) -> dict:
        """Turns the rows into what is searched, and checks it; its entry in the manifest."""

    def differences(self, there: dict) -> str:
        """Difference of an entry from that of the half that this one would build, or ""."""


def export_halves(
    export_dir: str | os.PathLike, kind: str = AUTO, *, version: int | None = None
) -> tuple[list[Half], ExportManifest]:
    """The halves of an index of an export, and the manifest of one of its parts."""
    models = load_exported_models(export_dir, version)
    return halves_of(models, kind), models.manifest


def halves_of(models: ExportedModels, kind: str = AUTO) -> list[Half]:
    """A half for each family that ranks and needs one."""
    families = map(family, with_parts(models.retriever))
    halves = (one.index_half(models, kind) for one in families)
    return [half for half in halves if half is not None]


_TEXTS_PER_CALL = 1024


def build_index(
    directory: str | os.PathLike,
    collection: Source,
    halves: Sequence[Half],
    export: ExportManifest,
    data: DataSettings | None = None,
    *,
    overwrite: bool = False,
    update: bool = False,
) -> IndexManifest:
    """Encodes and indexes a collection; an index of the same state that is there stays."""
    # `overwrite` replaces an index of anything, `update` one of another state of the
    # documents: the result is the same, but what has not changed is taken from it.
    directory, earlier = Path(directory), None
    if directory.exists() and not overwrite:
        there, fingerprint = IndexManifest.read(directory), collection.fingerprint()
        is_same = update or there.fingerprint == fingerprint
        if update and data == export.data != there.data:  # nobody names a collection
            reason = f"the index is of {there.collection_name}, and not of the documents of the run"
            remedy = "Give --collection, or the flags of that set; or --overwrite for the run's"
            raise input_error(directory, reason, remedy)
        remedy = "" if update else "--update for another state of its documents, "
        _check_same(directory, there, halves, export, is_same, remedy)
        if there.fingerprint == fingerprint:
            if update:
                logging.info("Nothing has changed: %d documents", there.documents)
            return there
        earlier = DocumentIndex(directory)
    elif directory.exists():
        check_kind(directory, INDEX)  # nothing but an index is ever replaced
    with contextlib.ExitStack() as held:
        if directory.exists():  # the last one to end would win, whatever it has read
            reason, remedy = "another process replaces the index", "Wait until it is done"
            held.enter_context(locked(directory / MANIFEST, directory, reason, remedy))
        replace = overwrite or update
        path, facts = held.enter_context(new_folder(directory, INDEX, replace=replace))
        manifest = _written(path, collection, halves, export, data, earlier)
        facts |= dataclasses.asdict(manifest)
    return manifest


def index_in_memory(
    collection: Source,
    halves: Sequence[Half],
    export: ExportManifest,
    data: DataSettings | None = None,
) -> DocumentIndex:
    """An index for this process alone: its files are gone as soon as they are open."""
    with tempfile.TemporaryDirectory(prefix="smoothclir-index-") as directory:
        content = Path(directory)
        manifest = _written(content, collection, halves, export, data)
        return DocumentIndex.of_files(content, manifest)


def _written(
    directory: Path,
    collection: Source,
    halves: Sequence[Half],
    export: ExportManifest,
    data: DataSettings | None,
    earlier: DocumentIndex | None = None,
) -> IndexManifest:
    """Writes the files of an index into a directory."""
    documents = encode_collection(collection, halves, directory, earlier)
    return IndexManifest(
        **{**export.shared(), "data": data},
        fingerprint=collection.fingerprint(),
        collection_name=collection.name,
        state=state_of_data(data),
        documents=len(documents),
        halves={half.name: half.finish(directory / half.name, documents) for half in halves},
    )


def encode_collection(
    collection: Source,
    halves: Sequence[Half],
    directory: Path,
    earlier: DocumentIndex | None = None,
) -> DocumentStore:
    """Writes `documents/` and each half; what has not changed is taken from an earlier index."""

    def encoded(batch: Sequence[Text]) -> tuple[Sequence[Text], int, list[list]]:
        places = np.full(len(batch), -1) if earlier is None else earlier.documents.same_as(batch)
        ends = [0, *(np.flatnonzero(np.diff(places >= 0)) + 1), len(batch)]
        pieces = [slice(*piece) for piece in itertools.pairwise(ends)]
        rows = [[rows_of(half, batch[piece], places[piece]) for piece in pieces] for half in halves]
        return batch, int((places >= 0).sum()), rows

    def rows_of(half: Half, documents: Sequence[Text], places: np.ndarray) -> Any:
        rows = None
        if places[0] >= 0:
            rows = half.kept(earlier.half(half.name), places, documents)
        return half.encode(documents) if rows is None else rows

    languages, kept = [], 0
    batches = text_batches(
        collection.documents(), size=_TEXTS_PER_CALL, text=lambda document: document.text
    )
    with contextlib.ExitStack() as stack:
        bar = stack.enter_context(progress_bar(None, "Encode the collection", "documents"))
        write_documents = stack.enter_context(document_writer(directory / DOCUMENTS))
        writers = [stack.enter_context(half.writer(directory / half.name)) for half in halves]
        for batch, same, rows in map_in_threads(encoded, batches):
            kept += same
            write_documents(batch)
            languages += [document.language for document in batch]
            for write, pieces in zip(writers, rows):
                for piece in pieces:
                    write(piece)
            bar.update(len(batch))
    documents = DocumentStore(directory / DOCUMENTS)
    check_ids(collection, documents.hashes)
    if earlier is not None:
        both = len(np.intersect1d(documents.hashes, earlier.documents.hashes))
        new, gone = len(documents) - both, len(earlier) - both
        counts = f"Documents: {new} new, {both - kept} changed, {gone} dropped, {kept} kept"
        if 2 * gone > len(earlier):  # a dump that was cut
            remedy = "If the collection was cut short, run this again with all of it"
            logging.warning(f"{counts}. More than half of the earlier ones are gone. {remedy}.")
        else:
            logging.info(counts)
    several = len({*languages}) > 1
    rows = (
        {**row, "language": code} if several or "language" in row else row
        for row, code in itertools.zip_longest(collection.metadata(), languages, fillvalue={})
    )
    place = functools.partial(collection.place, "documents")
    write_metadata(directory / DOCUMENTS / METADATA, rows, len(documents), place)
    if earlier is not None:
        types = Metadata(directory / DOCUMENTS / METADATA).types
        _warn_of_other_columns(earlier.metadata.types, types)
    return documents


def _warn_of_other_columns(before: Mapping[str, str], now: Mapping[str, str]) -> None:
    for name, kind in before.items():
        if name not in now:
            logging.warning(
                f"The column {name} is gone, and filters over it fail. New columns:"
                f" {', '.join(sorted(now.keys() - before.keys())) or 'none'}."
                " If it was lost by mistake, correct the documents and run this again."
            )
        elif now[name] != kind:
            logging.warning(
                f"The column {name} was {kind}, and is {now[name]} now, as filters compare it."
                " If a few values alone are of another kind, correct them and run this again."
            )


def _check_same(
    directory: Path,
    there: IndexManifest,
    halves: Sequence[Half],
    export: ExportManifest,
    same: bool,
    remedy: str,
) -> None:
    """Checks what an index is of; `same` is whether its documents are those that are wanted."""
    try:
        check_pair(there, export)
        different = [
            half.differences(there.halves[half.name])
            if half.name in there.halves
            else f"no {family(half.name).half_content or half.name}"
            for half in halves
        ]
        if not same:
            reason = (
                "it belongs to another collection, or to another state of this one"
                f" ({there.collection_name})"
            )
        elif any(different):
            reason = f"it has {', '.join(filter(None, different))}"
        else:
            return
    except ValueError as error:
        reason = str(error).rstrip(".")
        remedy = f"--version={there.version} for the models that it is of, "
    raise input_error(
        directory,
        f"there is an index already: {reason}",
        f"Give --overwrite to replace it, {remedy}or another --index_dir",
    )
