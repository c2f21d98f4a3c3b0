"""Writing a collection into Milvus, and adding, replacing and removing its documents by id."""

import operator
from collections.abc import Iterator, Sequence

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Source, Text
from tf_smoothclir.engines.milvus import CollectionNote, Milvus
from tf_smoothclir.engines.milvus_collection import MilvusCollection, field_values
from tf_smoothclir.index.builder import Half
from tf_smoothclir.index.document_collections import check_ids
from tf_smoothclir.index.index_kind import AUTO, kind_for
from tf_smoothclir.publishing.export_directory import ExportManifest, check_pair
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.parallel import in_batches, map_in_threads, text_batches
from tf_smoothclir.utils.progress import progress_bar

_TEXTS_PER_CALL = 1024
_IDS_PER_CALL = 1000


def build_collection(
    milvus: Milvus,
    name: str,
    collection: Source,
    halves: Sequence[Half],
    export: ExportManifest,
    *,
    kind: str = AUTO,
    data: DataSettings | None = None,
    overwrite: bool = False,
) -> MilvusCollection:
    """Encodes a collection and writes it into Milvus; after an interruption, all again."""
    # It is written as `<name>_building`, and gets its name once it is complete.
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
    documents = _checked_size(collection)
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
    _write(written, collection.documents(), halves, documents)
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
    add: Source | None = None,
    remove: Sequence[str] = (),
) -> MilvusCollection:
    """Removes documents, then adds others, which replace those of the same ids."""
    # Milvus takes the changes batch by batch: after an interruption, give them again.
    target = MilvusCollection(milvus, name)
    check_pair(target.manifest, export)
    documents = 0 if add is None else _checked_size(add)
    target.delete(remove)
    if add is not None:
        _write(target, add.documents(), halves, documents)
    target.flush()
    return target


def _checked_size(collection: Source) -> int:
    """The number of documents; Milvus would accept an id twice, and keeps no other columns."""
    if others := next(iter(collection.metadata()), None):
        logging.info("Milvus keeps ids, titles and texts. Left out are: %s", ", ".join(others))
    ids = (document.id for document in collection.documents())
    parts = [hash_ids(batch) for batch in in_batches(ids, _IDS_PER_CALL)]
    hashes = np.concatenate([np.zeros(0, np.uint64), *parts])
    check_ids(collection, hashes)
    return len(hashes)


def _write(
    target: MilvusCollection, documents: Iterator[Text], halves: Sequence[Half], count: int
) -> None:
    def encoded(batch: Sequence[Text]) -> tuple[Sequence[Text], dict]:
        return batch, {half.name: field_values(half.name, half.encode(batch)) for half in halves}

    batches = text_batches(documents, size=_TEXTS_PER_CALL, text=operator.attrgetter("text"))
    with progress_bar(count, "Write the collection", "documents") as bar:
        for batch, columns in map_in_threads(encoded, batches):
            target.write(batch, columns)
            bar.update(len(batch))
