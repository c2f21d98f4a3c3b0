"""Adding documents to an index and removing them, without encoding the others again.

Removed documents stay in the files, marked as removed, until they are more than a fifth of all.
Then the remaining documents are written to one new segment, and FAISS is built again from their
vectors.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.index.builder import opened_segments
from tf_smoothclir.index.document_collections import Collection
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.encoding import Encode, encode_segments
from tf_smoothclir.index.generations import Generation, commit_generation
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.recall import QueryVectors, measured_recall
from tf_smoothclir.index.segments import Segments, SegmentWriter
from tf_smoothclir.index.vector_index import SMALLEST_IVF_PQ, IndexSettings, VectorIndex
from tf_smoothclir.index.work_directory import claimed, locked_work_directory
from tf_smoothclir.publishing.manifest import ExportManifest, check_pair
from tf_smoothclir.utils.errors import input_error

MOST_REMOVED = 0.2  # HNSW and IVF step over removed documents, which costs time and recall
MOST_SEGMENTS = 256  # each has ten open files
_DOCUMENTS_PER_WRITE = 1024


def update_index(
    directory: str | os.PathLike,
    encode: Encode | None,
    tower_manifest: ExportManifest,
    *,
    add: Collection | None = None,
    remove: Sequence[str] = (),
    replace: bool = False,
    query_vectors: QueryVectors = lambda: None,
) -> IndexManifest:
    """Removes documents from an index, then adds others: both or, on any error, neither.

    Args:
        directory: The directory of the index.
        encode: The document tower, from `load_tower`; None if nothing is added.
        tower_manifest: The manifest of the document tower.
        add: Documents to add.
        remove: Ids of documents to remove.
        replace: An added document replaces the one with the same id; otherwise that is an error.
        query_vectors: Returns `[queries, dim]` to measure the recall with; None to use vectors of
            documents.

    Returns:
        The new manifest of the index.

    Raises:
        InputError: The index belongs to other towers, an id to remove is not in it, an id to add
            already is, or no document would be left.
    """
    directory = Path(directory)
    IndexManifest.read(directory)  # no work directory beside anything but an index
    with contextlib.ExitStack() as stack:
        work = stack.enter_context(locked_work_directory(directory))
        index = DocumentIndex(directory)
        check_pair(index.manifest, tower_manifest)
        if add is not None:
            pair_id = tower_manifest.pair_id
            stack.enter_context(claimed(work, pair_id, add, start_over=True))
        alive = index.alive.copy()
        alive[_positions(index, remove)] = False
        encoded = []
        if add is not None:
            encoded = encode_segments(work, add, encode)
            added = opened_segments(encoded, tower_manifest.dim, add)
            alive = _without_same_ids(index, alive, added, add, replace)
            alive = np.concatenate([alive, np.ones(len(added), bool)])
        if not alive.any():
            raise input_error(
                directory, "no document would be left in the index", "Delete its directory instead"
            )
        generation, segments = _new_generation(directory, index, encoded, alive, work)
        ranker = Ranker(generation.vectors, segments, generation.alive)
        recall = measured_recall(ranker, segments, query_vectors)
        manifest = dataclasses.replace(index.manifest, recall=recall, changed=True)
        return commit_generation(directory, manifest, generation)


def _positions(index: DocumentIndex, ids: Sequence[str]) -> np.ndarray:
    positions = index.segments.positions_of(ids, index.alive)
    unknown = np.flatnonzero(positions < 0)
    if unknown.size:
        raise input_error(
            f"id {ids[unknown[0]]!r}",
            f"it is not in the index ({unknown.size} of {len(ids)} ids are not)",
            "Take it out of the list of ids to remove",
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
            "Take it out, or give --replace to replace the document in the index",
        )
    alive = alive.copy()
    alive[positions[known]] = False
    return alive


def _new_generation(
    directory: Path, index: DocumentIndex, encoded: Sequence[Path], alive: np.ndarray, work: Path
) -> tuple[Generation, Segments]:
    names, dim = index.manifest.segments, index.manifest.dim
    paths = [*(directory / name for name in names), *encoded]
    segments = Segments(paths, dim)
    removed = np.count_nonzero(~alive)
    if removed <= MOST_REMOVED * len(alive) and len(paths) <= MOST_SEGMENTS:
        if encoded:
            index.vectors.add(Segments(encoded, dim))
        return Generation(index.vectors, names, encoded, alive), segments
    logging.info(
        "Rewriting the index as one segment: %d of %d documents are removed", removed, len(alive)
    )
    merged = _merged(segments, alive, work / "together")
    segments = Segments([merged], dim)
    settings = index.vectors.settings
    if settings.kind == "ivf_pq" and len(segments) < SMALLEST_IVF_PQ:
        logging.info("The index becomes flat: %d documents are too few for IVF-PQ", len(segments))
        settings = IndexSettings("flat")
    vectors = VectorIndex.build(settings.resolved(len(segments)), segments, dim)
    return Generation(vectors, [], [merged], np.ones(len(segments), bool)), segments


def _merged(segments: Segments, alive: np.ndarray, directory: Path) -> Path:
    """Writes the documents marked in `alive` to one segment."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    living = np.flatnonzero(alive)
    with SegmentWriter(directory) as writer:
        for begin in range(0, len(living), _DOCUMENTS_PER_WRITE):
            rows = living[begin : begin + _DOCUMENTS_PER_WRITE]
            writer.add([segments.document(row) for row in rows], segments.vectors(rows))
    return directory
