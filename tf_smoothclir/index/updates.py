"""Adding documents to an index and removing them, without encoding the others again.

Removed documents stay in the files, marked as removed, until they are more than a fifth of all;
then the living ones are written together, and FAISS is built anew from their vectors.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.index.builder import (
    Queries,
    State,
    measured_recall,
    opened_shards,
    publish,
)
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.encoding import (
    Encode,
    claimed,
    encode_shards,
    locked_work_directory,
)
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.segments import Segments, SegmentWriter
from tf_smoothclir.index.vector_index import SMALLEST_IVF_PQ, IndexSettings, VectorIndex
from tf_smoothclir.publishing.manifest import check_pair, read_manifest
from tf_smoothclir.utils.errors import input_error

MOST_REMOVED = 0.2  # HNSW and IVF pass over removed ones, which costs time and recall
MOST_SEGMENTS = 256  # each is ten open files
_DOCUMENTS_PER_WRITE = 1024


def update_index(
    directory: str | os.PathLike,
    encode: Encode | None,
    tower_manifest: dict,
    *,
    add: Collection | None = None,
    remove: Sequence[str] = (),
    replace: bool = False,
    queries: Queries = lambda: None,
) -> dict:
    """Removes documents from an index, then adds others: both or, on any error, neither.

    Args:
        directory: Of the index.
        encode: Document tower of `load_tower`; None where nothing is added.
        tower_manifest: Of the document tower.
        add: Documents to add.
        remove: Ids of documents to remove.
        replace: An added document takes the place of one with the same id; else that is an error.
        queries: Called for `[queries, dim]` to measure the recall by; None for document vectors.

    Returns:
        The new manifest of the index.

    Raises:
        InputError: The index is of other towers, an id to remove is not in it, one to add is
            already, or nothing would be left.
    """
    directory = Path(directory)
    read_manifest(directory, "index")  # nothing is put beside anything else
    with contextlib.ExitStack() as stack:
        work = stack.enter_context(locked_work_directory(directory))
        index = DocumentIndex(directory)
        check_pair(index.manifest, tower_manifest)
        if add is not None:
            pair_id = tower_manifest["pair_id"]
            stack.enter_context(claimed(work, pair_id, add, start_over=True))
        alive = index.alive.copy()
        alive[_positions(index, remove)] = False
        shards = []
        if add is not None:
            shards = encode_shards(work, add, encode)
            added = opened_shards(shards, tower_manifest["dim"], add)
            alive = _without_same_ids(index, alive, added, add, replace)
            alive = np.concatenate([alive, np.ones(len(added), bool)])
        if not alive.any():
            raise input_error(
                directory, "no document would be left in the index", "Delete its directory instead"
            )
        state, segments = _new_state(directory, index, shards, alive, work)
        recall = measured_recall(Ranker(state.index, segments, state.alive), segments, queries)
        return publish(directory, {**index.manifest, "recall": recall, "changed": True}, state)


def _positions(index: DocumentIndex, ids: Sequence[str]) -> np.ndarray:
    positions = index.segments.positions_of(ids, index.alive)
    unknown = np.flatnonzero(positions < 0)
    if unknown.size:
        raise input_error(
            f"id {ids[unknown[0]]!r}",
            f"it is not in the index ({unknown.size} of {len(ids)} ids are not)",
            "Take it out of the list of what is to be removed",
        )
    return positions


def _without_same_ids(
    index: DocumentIndex, alive: np.ndarray, added: Segments, collection: Collection, replace: bool
) -> np.ndarray:
    """Returns `alive` without the documents that added ones replace."""
    # Few hashes are in both; only these documents are read.
    rows = np.flatnonzero(np.isin(added.hashes, index.segments.hashes[alive]))
    ids = [added.document(row).id for row in rows]
    positions = index.segments.positions_of(ids, alive)
    known = positions >= 0
    if known.any() and not replace:
        first = rows[known][0]
        raise input_error(
            collection.place(first),
            f"id {added.document(first).id!r} is in the index already"
            f" ({np.count_nonzero(known)} of {len(added)} are)",
            "Take it out, or give --replace for the new one to take its place",
        )
    alive = alive.copy()
    alive[positions[known]] = False
    return alive


def _new_state(
    directory: Path, index: DocumentIndex, shards: Sequence[Path], alive: np.ndarray, work: Path
) -> tuple[State, Segments]:
    names, dim = index.manifest["segments"], index.manifest["dim"]
    paths = [*(directory / name for name in names), *shards]
    segments = Segments(paths, dim)
    removed = np.count_nonzero(~alive)
    if removed <= MOST_REMOVED * len(alive) and len(paths) <= MOST_SEGMENTS:
        if shards:
            index.vectors.add(Segments(shards, dim))
        return State(index.vectors, names, shards, alive), segments
    logging.info("Index: written together, as %d of %d are removed", removed, len(alive))
    living = _written_together(segments, alive, work / "together")
    segments = Segments([living], dim)
    settings = index.vectors.settings
    if settings.kind == "ivf_pq" and len(segments) < SMALLEST_IVF_PQ:
        logging.info("Index: flat from now on, as %d documents are few", len(segments))
        settings = IndexSettings("flat")
    vectors = VectorIndex.build(settings.resolved(len(segments)), segments, dim)
    return State(vectors, [], [living], np.ones(len(segments), bool)), segments


def _written_together(segments: Segments, alive: np.ndarray, directory: Path) -> Path:
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    living = np.flatnonzero(alive)
    with SegmentWriter(directory) as writer:
        for begin in range(0, len(living), _DOCUMENTS_PER_WRITE):
            rows = living[begin : begin + _DOCUMENTS_PER_WRITE]
            writer.add([segments.document(row) for row in rows], segments.vectors(rows))
    return directory
