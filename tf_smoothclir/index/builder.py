"""Building the index of a collection: in one go, checked as written, put in place in one step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.encoding import encode_collection
from tf_smoothclir.index.halves import Half
from tf_smoothclir.index.manifest import INDEX, IndexManifest
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import check_kind, new_folder
from tf_smoothclir.utils.errors import input_error


def build_index(
    directory: str | os.PathLike,
    collection: Collection,
    halves: Sequence[Half],
    export: ExportManifest,
    *,
    data: DataSettings | None = None,
    overwrite: bool = False,
) -> IndexManifest:
    """Encodes and indexes a collection; an index of the same state that is there stays."""
    directory = Path(directory)
    if directory.exists() and not overwrite:
        there = IndexManifest.read(directory)
        _check_same(directory, there, collection, halves, export)
        return there
    if directory.exists():
        check_kind(directory, INDEX)  # nothing but an index is ever replaced
    with new_folder(directory, INDEX, replace=overwrite) as draft:
        documents = encode_collection(collection, halves, draft.path)
        _check_ids(documents, collection)
        manifest = IndexManifest(
            version=export.version,
            pair_id=export.pair_id,
            thresholds=tuple(export.thresholds),
            cut_points=export.cut_points,
            parts=export.parts,
            retriever=export.retriever,
            plugins=export.plugins,
            fingerprint=collection.fingerprint(),
            collection_name=collection.name,
            data=data,
            documents=len(documents),
            **{half.name: half.finish(draft.path / half.name, documents) for half in halves},
        )
        draft.facts = manifest.facts()
    return manifest


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


def _check_ids(documents: DocumentStore, collection: Collection) -> None:
    if not len(documents):
        raise input_error(collection.name, "there are no documents", "Check the collection")
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
