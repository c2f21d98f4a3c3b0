"""Building the index of a collection."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.encoding import Encode, encode_segments
from tf_smoothclir.index.generations import Generation, commit_generation
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.recall import QueryVectors, measured_recall
from tf_smoothclir.index.segments import Segments
from tf_smoothclir.index.vector_index import IndexSettings, VectorIndex
from tf_smoothclir.index.work_directory import claimed, locked_work_directory, work_directory
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import input_error

EncodeAll = Callable[[Path, Collection, Encode], "list[Path]"]


def build_index(
    directory: str | os.PathLike,
    collection: Collection,
    encode: Encode,
    tower_manifest: ExportManifest,
    settings: IndexSettings | None = None,
    *,
    query_vectors: QueryVectors = lambda: None,
    data: DataSettings | None = None,
    overwrite: bool = False,
    encode_all: EncodeAll | None = None,
) -> IndexManifest:
    """Encodes and indexes a collection; continues an interrupted build.

    Args:
        directory: The directory of the index.
        collection: The documents.
        encode: The document tower, from `load_tower`.
        tower_manifest: The manifest of the document tower.
        settings: Kind and parameters of the vector index.
        query_vectors: Returns `[queries, dim]` to measure the recall with; None to use vectors of
            documents.
        data: Finds the collection again, if it is a retrieval set.
        overwrite: Replace an index that is there; it stays intact until the new one is complete.
        encode_all: Takes the place of `encode_segments`, such as a `BeamEncoder`.

    Returns:
        The manifest of the index. If there is an index of the same towers, settings and state of
        the collection already, it is left as it is.

    Raises:
        InputError: There is an index of something else, or the collection has a defect.
    """
    directory, settings = Path(directory), settings or IndexSettings()
    if directory.exists():
        there = IndexManifest.read(directory)  # nothing but an index is ever replaced
        if not overwrite:
            _check_same(directory, there, collection, tower_manifest, settings)
            if work_directory(directory).exists():  # killed just before it was deleted
                with locked_work_directory(directory):
                    pass
            return there
    with (
        locked_work_directory(directory) as work,
        claimed(work, tower_manifest.pair_id, collection, start_over=overwrite),
    ):
        encoded = (encode_all or encode_segments)(work, collection, encode)
        segments = opened_segments(encoded, tower_manifest.dim, collection)
        settings = settings.resolved(len(segments))
        logging.info("Indexing %d documents: %s", len(segments), settings.kind)
        vectors = VectorIndex.build(settings, segments, tower_manifest.dim)
        alive = np.ones(len(segments), bool)
        manifest = IndexManifest.of_tower(
            tower_manifest,
            fingerprint=collection.fingerprint(),
            collection_name=collection.name,
            data=data,
            recall=measured_recall(Ranker(vectors, segments, alive), segments, query_vectors),
        )
        return _put_in_place(directory, work, manifest, Generation(vectors, [], encoded, alive))


def _put_in_place(
    directory: Path, work: Path, manifest: IndexManifest, generation: Generation
) -> IndexManifest:
    if directory.exists():
        return commit_generation(directory, manifest, generation)
    # A new index is complete before it gets its name; a kill leaves only the work directory.
    assembled = work / "assembled"
    shutil.rmtree(assembled, ignore_errors=True)
    assembled.mkdir()
    manifest = commit_generation(assembled, manifest, generation)
    os.rename(assembled, directory)
    return manifest


def _check_same(
    directory: Path,
    there: IndexManifest,
    collection: Collection,
    tower: ExportManifest,
    settings: IndexSettings,
) -> None:
    try:
        check_pair(there, tower)
        if there.fingerprint != collection.fingerprint():
            reason = (
                "it belongs to another collection, or to another state of this one"
                f" ({there.collection_name})"
            )
        elif there.changed:
            reason = "documents were added to it or removed from it since it was built"
        elif different := settings.differences(there.settings):
            reason = f"it has {different}"
        else:
            return
    except ValueError as error:
        reason = str(error).rstrip(".")
    raise input_error(
        directory,
        f"there is an index already: {reason}",
        "Give --overwrite to replace it, or another --index_dir",
    )


def opened_segments(encoded: Sequence[Path], dim: int, collection: Collection) -> Segments:
    """Opens the encoded segments of a collection.

    Raises:
        InputError: There are no documents, or two have the same id.
    """
    if not encoded:
        raise input_error(collection.name, "there are no documents", "Check the collection")
    segments = Segments(encoded, dim)
    same = segments.same_ids()
    if same:
        id_ = segments.document(same[0]).id
        places = [
            collection.place(index)
            for index, text in enumerate(collection.documents())
            if text.id == id_
        ]
        raise input_error(
            places[1], f"id {id_!r} is already used at {places[0]}", "Give each document its own id"
        )
    return segments
