"""Writing a collection into Milvus, and adding, replacing and removing its documents by id."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.engines.milvus import CollectionNote, Milvus
from tf_smoothclir.engines.milvus_collection import MilvusCollection
from tf_smoothclir.engines.milvus_fields import field_values
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.halves import Half
from tf_smoothclir.index.index_kind import AUTO, kind_for
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.text.batches import in_batches, text_batches
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.progress import progress_bar

_TEXTS_PER_CALL = 1024
_IDS_PER_CALL = 1000


def build_collection(
    milvus: Milvus,
    name: str,
    collection: Collection,
    halves: Sequence[Half],
    export: ExportManifest,
    *,
    kind: str = AUTO,
    data: DataSettings | None = None,
    overwrite: bool = False,
) -> MilvusCollection:
    """Encodes a collection and writes it into Milvus.

    It is written as `<name>_building`, and gets its name once it is complete. An interrupted build
    starts from the beginning.
    """
    if milvus.has(name):
        milvus.note(name)  # nothing that is not ours is ever replaced
        if not overwrite:
            raise input_error(
                f"--engine_collection={name}",
                "there is a collection of this name already",
                "Give --overwrite to replace it, --add to add documents to it, or another name",
            )
    if others := {half.name for half in halves} - {"dense", "lexical"}:
        reason = f"Milvus keeps no half of the family {min(others)}"
        raise input_error(f"--engine_collection={name}", reason, "Build an index on disk")
    documents = len(_checked_ids(collection))
    note = CollectionNote(
        **{**export.shared(), "data": data},
        halves=tuple(half.name for half in halves),
        kind=kind_for(documents, kind),
    )
    building = f"{name}_building"
    client = milvus.client
    with milvus.explained():
        client.drop_collection(building)
    written = MilvusCollection.create(milvus, building, note, export.dim)
    _write(written, collection.documents(), halves, documents, replace=False)
    written.flush()
    with milvus.explained():
        client.drop_collection(name)
        client.rename_collection(building, name)
    return MilvusCollection(milvus, name)


def change_collection(
    milvus: Milvus,
    name: str,
    halves: Sequence[Half],
    export: ExportManifest,
    *,
    add: Collection | None = None,
    remove: Sequence[str] = (),
    replace: bool = False,
) -> MilvusCollection:
    """Removes documents, then adds others. All ids are checked before anything is changed.

    Milvus takes the changes batch by batch. After an interruption, give those that are missing
    again, with `replace`.
    """
    target = MilvusCollection(milvus, name)
    check_pair(target.manifest, export)
    unknown = sorted(set(remove) - target.known(remove))
    if unknown:
        raise input_error(
            f"id {unknown[0]!r}",
            f"it is not in the collection ({len(unknown)} of {len(remove)} ids are not)",
            "Take it out of the list of ids to remove",
        )
    documents = 0
    if add is not None:
        documents = len(_checked_ids(add))
        if not replace:
            _check_new(target, add, set(remove))
    target.delete(remove)
    if add is not None:
        _write(target, add.documents(), halves, documents, replace=replace)
    target.flush()
    return target


def _check_new(target: MilvusCollection, add: Collection, removed: set[str]) -> None:
    numbered = enumerate(document.id for document in add.documents())
    for batch in in_batches(numbered, _IDS_PER_CALL):
        known = target.known([id_ for _, id_ in batch]) - removed
        for number, id_ in batch:
            if id_ in known:
                raise input_error(
                    add.place("documents", number),
                    f"id {id_!r} is in the collection already",
                    "Take it out, or give --replace to replace the document in the collection",
                )


def _checked_ids(collection: Collection) -> np.ndarray:
    """The hashes of all ids; Milvus would accept an id twice."""
    ids = (document.id for document in collection.documents())
    parts = [hash_ids(batch) for batch in in_batches(ids, _IDS_PER_CALL)]
    if not parts:
        raise input_error(collection.name, "there are no documents", "Check the collection")
    hashes = np.concatenate(parts)
    values, counts = np.unique(hashes, return_counts=True)
    suspects = set(np.flatnonzero(np.isin(hashes, values[counts > 1])).tolist())
    first: dict[str, int] = {}
    for number, document in enumerate(collection.documents() if suspects else ()):
        if number in suspects and first.setdefault(document.id, number) != number:
            there = collection.place("documents", first[document.id])
            raise input_error(
                collection.place("documents", number),
                f"id {document.id!r} is already used at {there}",
                "Give each document its own id",
            )
    return hashes


def _write(
    target: MilvusCollection,
    documents: Iterator[Text],
    halves: Sequence[Half],
    count: int,
    *,
    replace: bool,
) -> None:
    def encoded(batch: Sequence[Text]) -> tuple[Sequence[Text], dict]:
        return batch, {half.name: field_values(half.name, half.encode(batch)) for half in halves}

    batches = text_batches(documents, size=_TEXTS_PER_CALL, text=operator.attrgetter("text"))
    with progress_bar(count, "Write the collection", "documents") as bar:
        for batch, columns in map_in_threads(encoded, batches):
            target.write(batch, columns, replace=replace)
            bar.update(len(batch))
