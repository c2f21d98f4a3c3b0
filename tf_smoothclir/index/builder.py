"""Building the index of a collection, and putting a new state of an index in place."""

from __future__ import annotations

import dataclasses
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Optional

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.encoding import (
    SHARD,
    Encode,
    claimed,
    encode_shards,
    locked_work_directory,
    work_directory,
)
from tf_smoothclir.index.ranker import RECALL_DEPTH, Ranker
from tf_smoothclir.index.segments import (
    Segments,
    link_files,
)
from tf_smoothclir.index.vector_index import IndexSettings, VectorIndex
from tf_smoothclir.publishing.manifest import MANIFEST, check_pair, read_manifest
from tf_smoothclir.utils.digests import file_digests, files_below
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import delete_in, new_directory, write_json

FAISS, REMOVED = "faiss", "removed"
_SEGMENTS, _GENERATIONS = "segments", "generations"
_OF_THE_TOWER = ("version", "pair_id", "dim", "thresholds")
RECALL_QUERIES = 1000
_SEED = 13

Queries = Callable[[], Optional[np.ndarray]]
EncodeAll = Callable[[Path, Collection, Encode], list[Path]]


@dataclasses.dataclass(frozen=True)
class State:
    """What an index is to hold from now on.

    Attributes:
        index: The vectors in FAISS.
        segments: Relative paths of the segments that are in the index already and stay.
        added: Segments to put in behind them.
        alive: `[documents]` bool, of all segments in this order.
    """

    index: VectorIndex
    segments: Sequence[str]
    added: Sequence[Path]
    alive: np.ndarray


def build_index(
    directory: str | os.PathLike,
    collection: Collection,
    encode: Encode,
    tower_manifest: dict,
    settings: IndexSettings | None = None,
    *,
    queries: Queries = lambda: None,
    data: dict | None = None,
    overwrite: bool = False,
    encode_all: EncodeAll | None = None,
) -> dict:
    """Encodes and indexes a collection; what was broken off is continued.

    Args:
        directory: Of the index.
        collection: The documents.
        encode: Document tower of `load_tower`.
        tower_manifest: Of the document tower.
        settings: Kind and parameters.
        queries: Called for `[queries, dim]` to measure the recall by; None for document vectors.
        data: Settings by which the collection is found again, if it is a retrieval set.
        overwrite: Replace an index that is there; it stays whole until the new one is.
        encode_all: Takes the place of `encode_shards`, such as a `BeamEncoder`.

    Returns:
        The manifest of the index. One that is there for the same towers and the same state of the
        collection is left as it is.

    Raises:
        InputError: There is an index of something else, or the collection has a defect.
    """
    directory, settings = Path(directory), settings or IndexSettings()
    if directory.exists():
        manifest = read_manifest(directory, "index")  # nothing else is ever replaced
        if not overwrite:
            _check_same(directory, manifest, collection, tower_manifest, settings)
            if work_directory(directory).exists():  # killed at the very end, before it was deleted
                with locked_work_directory(directory):
                    pass
            return manifest
    pair_id = tower_manifest["pair_id"]
    with (
        locked_work_directory(directory) as work,
        claimed(work, pair_id, collection, start_over=overwrite),
    ):
        shards = (encode_all or encode_shards)(work, collection, encode)
        segments = opened_shards(shards, tower_manifest["dim"], collection)
        settings = settings.resolved(len(segments))
        logging.info("Index: %s of %d documents", settings.kind, len(segments))
        index = VectorIndex.build(settings, segments, tower_manifest["dim"])
        alive = np.ones(len(segments), bool)
        manifest = {key: tower_manifest[key] for key in _OF_THE_TOWER}
        manifest |= {"role": "index", "collection": collection.fingerprint()}
        manifest |= {"name": collection.name, "data": data}
        manifest["recall"] = measured_recall(Ranker(index, segments, alive), segments, queries)
        state = State(index, [], shards, alive)
        if directory.exists():
            return publish(directory, manifest, state)
        # Whole before it has its name; what a kill leaves over goes with the work directory.
        assembled = work / "assembled"
        shutil.rmtree(assembled, ignore_errors=True)
        assembled.mkdir()
        manifest = publish(assembled, manifest, state)
        os.rename(assembled, directory)
        return manifest


def _check_same(
    directory: Path,
    manifest: dict,
    collection: Collection,
    tower: dict,
    settings: IndexSettings,
) -> None:
    try:
        check_pair(manifest, tower)
        if manifest["collection"] != collection.fingerprint():
            reason = f"it is of another collection, or of another state of it ({manifest['name']})"
        elif manifest.get("changed"):
            reason = "documents were added to it or removed from it since it was built"
        elif different := settings.differences(manifest["index"]):
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


def opened_shards(shards: Sequence[Path], dim: int, collection: Collection) -> Segments:
    """Opens the shards of a collection.

    Raises:
        InputError: There is no document, or an id stands twice.
    """
    if not shards:
        raise input_error(collection.name, "there are no documents", "Check the collection")
    segments = Segments(shards, dim)
    twice = segments.twice()
    if twice:
        id_ = segments.document(twice[0]).id
        places = [
            collection.place(index)
            for index, text in enumerate(collection.documents())
            if text.id == id_
        ]
        raise input_error(
            places[1], f"id {id_!r} stands already at {places[0]}", "Give every document its own id"
        )
    return segments


def measured_recall(ranker: Ranker, segments: Segments, queries: Queries) -> dict:
    """Measures an index against the exact ranking.

    Args:
        ranker: Of the index.
        segments: Its documents.
        queries: Called for `[queries, dim]`; None for vectors of documents.

    Returns:
        For the manifest: the recall, its depth, by how many queries, and what these are.
    """
    if ranker.exact:
        return {"value": 1.0, "depth": RECALL_DEPTH, "queries": 0, "measured_by": "exact"}
    vectors, kind = queries(), "queries of the training run"
    if vectors is None:
        sample = permutation(len(segments), _SEED)[:RECALL_QUERIES]
        vectors, kind = segments.vectors(sample), "documents in place of queries"
    recall = {"depth": RECALL_DEPTH, "queries": len(vectors), "measured_by": kind}
    return {"value": ranker.recall(vectors), **recall}


def publish(directory: Path, manifest: dict, state: State) -> dict:
    """Puts a new state of an index in place, beside the old one; the manifest decides which holds.

    Whatever happens on the way, the manifest names files of one state, and all of them are there.

    Args:
        directory: Of the index; holds the old state or nothing.
        manifest: What is known about the index besides its files.
        state: The new state.

    Returns:
        The manifest as written.
    """
    before = read_manifest(directory, "index") if (directory / MANIFEST).exists() else {}
    sweep(directory, before)
    generation = before.get("generation", 0) + 1
    segments = [f"{_SEGMENTS}/{generation:06}-{i:06}" for i in range(len(state.added))]
    for shard, name in zip(state.added, segments):
        with new_directory(directory / name) as temporary:
            link_files(shard, temporary)
            (temporary / SHARD).unlink(missing_ok=True)
    current = f"{_GENERATIONS}/{generation:06}"
    with new_directory(directory / current) as temporary:
        np.flatnonzero(~state.alive).astype("<i8").tofile(temporary / REMOVED)
        if state.index.settings.kind != "flat":
            state.index.save(temporary / FAISS)
    kept = {
        name: digest
        for name, digest in before.get("files", {}).items()
        if name.startswith(tuple(f"{segment}/" for segment in state.segments))
    }
    manifest = {
        **manifest,
        "generation": generation,
        "index": dataclasses.asdict(state.index.settings),
        "documents": int(np.count_nonzero(state.alive)),
        "removed": int(np.count_nonzero(~state.alive)),
        "current": current,
        "segments": [*state.segments, *segments],
        "files": kept | file_digests(directory, files_below(directory, [current, *segments])),
    }
    write_json(directory / MANIFEST, manifest)
    sweep(directory, manifest)
    return manifest


def sweep(directory: Path, manifest: dict) -> None:
    """Deletes what a broken off update left behind, and the parts of former states."""
    delete_in(directory)
    kept = {*manifest.get("segments", ()), manifest.get("current")}
    for folder in (_SEGMENTS, _GENERATIONS):
        for path in (directory / folder).glob("*"):
            if f"{folder}/{path.name}" not in kept:
                shutil.rmtree(path)
