"""Building the index of a collection: in one go, checked as written, and swapped in atomically.

Below the directory of an index, the manifest names the one directory that holds its content. A new
content is written and checked next to the old one; replacing the manifest is what puts it in place.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.documents import DOCUMENTS, DocumentStore, join_documents
from tf_smoothclir.index.encoding import encode_segments
from tf_smoothclir.index.halves import Half
from tf_smoothclir.index.manifest import IndexManifest, check_is_index
from tf_smoothclir.index.work_directory import claimed, locked_work_directory, work_directory
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.digests import file_digests, files_below
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import delete_in, flush_to_disk, new_directory

_NUMBERED = re.compile(r"\d{6}")


def build_index(
    directory: str | os.PathLike,
    collection: Collection,
    halves: Sequence[Half],
    export: ExportManifest,
    *,
    data: DataSettings | None = None,
    overwrite: bool = False,
) -> IndexManifest:
    """Encodes and indexes a collection; continues an interrupted build."""
    directory = Path(directory)
    if directory.exists():
        check_is_index(directory)  # nothing but an index is ever replaced
        if not overwrite:
            there = IndexManifest.read(directory)
            _check_same(directory, there, collection, halves, export)
            if work_directory(directory).exists():  # killed just before it was deleted
                with locked_work_directory(directory):
                    pass
            return there
    names = [half.name for half in halves]
    with (
        locked_work_directory(directory) as work,
        claimed(work, export.pair_id, collection, names, start_over=overwrite),
    ):
        segments = encode_segments(work, collection, halves)
        content = work / "content"
        with new_directory(content, replace=True) as temporary:
            documents = _joined_documents(segments, temporary, collection)
            notes = {
                half.name: half.join(
                    [segment / half.name for segment in segments],
                    temporary / half.name,
                    documents,
                )
                for half in halves
            }
        number = _next_number(directory)
        digests = file_digests(content, files_below(content))
        manifest = IndexManifest(
            version=export.version,
            pair_id=export.pair_id,
            thresholds=tuple(export.thresholds),
            cut_points=export.cut_points,
            parts=export.parts,
            fingerprint=collection.fingerprint(),
            collection_name=collection.name,
            data=data,
            documents=len(documents),
            content=number,
            digests={f"{number}/{name}": digest for name, digest in digests.items()},
            **notes,
        )
        _put_in_place(directory, work, manifest, content)
        return manifest


def _put_in_place(directory: Path, work: Path, manifest: IndexManifest, content: Path) -> None:
    if directory.exists():
        os.rename(content, directory / manifest.content)
        try:
            manifest.write(directory)
        except OSError:  # such as a full disk, which has no room for what nobody will read
            if not _is_in_place(directory, manifest):
                shutil.rmtree(directory / manifest.content)
            raise
        numbered = {name for name in os.listdir(directory) if _NUMBERED.fullmatch(name)}
        delete_in(directory, numbered - {manifest.content})
        return
    # A new index is complete before it gets its name; a kill leaves only the work directory.
    assembled = work / "assembled"
    shutil.rmtree(assembled, ignore_errors=True)
    assembled.mkdir()
    os.rename(content, assembled / manifest.content)
    manifest.write(assembled)
    os.rename(assembled, directory)
    flush_to_disk(directory.parent)  # before the work directory goes


def _is_in_place(directory: Path, manifest: IndexManifest) -> bool:
    try:
        return IndexManifest.read(directory).content == manifest.content
    except InputError:  # its manifest is damaged
        return False


def _next_number(directory: Path) -> str:
    there = os.listdir(directory) if directory.exists() else []
    return f"{1 + max((int(name) for name in there if _NUMBERED.fullmatch(name)), default=0):06}"


def _check_same(
    directory: Path,
    there: IndexManifest,
    collection: Collection,
    halves: Sequence[Half],
    export: ExportManifest,
) -> None:
    try:
        check_pair(there, export)
        different = [half.differences(getattr(there, half.name)) for half in halves]
        if there.fingerprint != collection.fingerprint():
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
    raise input_error(
        directory,
        f"there is an index already: {reason}",
        "Give --overwrite to replace it, or another --index_dir",
    )


def _joined_documents(
    segments: Sequence[Path], content: Path, collection: Collection
) -> DocumentStore:
    if not segments:
        raise input_error(collection.name, "there are no documents", "Check the collection")
    parts = [segment / DOCUMENTS for segment in segments]
    documents = join_documents(parts, content / DOCUMENTS)
    if same := documents.same_ids():
        id_ = documents[same[0]].id
        places = [
            collection.place(index)
            for index, text in enumerate(collection.documents())
            if text.id == id_
        ]
        raise input_error(
            places[1], f"id {id_!r} is already used at {places[0]}", "Give each document its own id"
        )
    return documents
