"""Generations of an index: each build or update puts a new one in place of the one before.

Below the directory of an index, `segments/` holds documents and vectors, and
`generations/<number>/` the rest of a state: which documents are removed, and the FAISS index. The
manifest names the files of one generation; replacing the manifest is what puts it in place.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.index.encoding import SEGMENT_NOTE
from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.segments import link_files
from tf_smoothclir.index.vector_index import VectorIndex
from tf_smoothclir.publishing.manifest import MANIFEST
from tf_smoothclir.utils.digests import file_digests, files_below
from tf_smoothclir.utils.files import delete_in, new_directory

FAISS, REMOVED = "faiss", "removed"
_SEGMENTS, _GENERATIONS = "segments", "generations"


@dataclasses.dataclass(frozen=True)
class Generation:
    """What an index is to hold from now on.

    Attributes:
        vectors: The FAISS index over all segments.
        kept: Relative paths of the segments that are in the index already and stay.
        added: Directories of new segments, which follow the kept ones.
        alive: `[documents]` bool, over all segments in this order; False for removed documents.
    """

    vectors: VectorIndex
    kept: Sequence[str]
    added: Sequence[Path]
    alive: np.ndarray


def commit_generation(
    directory: Path, manifest: IndexManifest, generation: Generation
) -> IndexManifest:
    """Puts a new generation of an index in place.

    Whenever the process is killed, the manifest names the files of one generation, and all of these
    files are there.

    Args:
        directory: The directory of the index; holds the generation before, or nothing.
        manifest: Of the new generation; its fields about files are filled in here.
        generation: The new generation.

    Returns:
        The manifest as written.
    """
    there = (directory / MANIFEST).exists()
    before = IndexManifest.read(directory) if there else manifest
    delete_leftovers(directory, before)
    number = before.generation + 1
    names = [f"{_SEGMENTS}/{number:06}-{i:06}" for i in range(len(generation.added))]
    for segment, name in zip(generation.added, names):
        with new_directory(directory / name) as temporary:
            link_files(segment, temporary)
            (temporary / SEGMENT_NOTE).unlink(missing_ok=True)
    current = f"{_GENERATIONS}/{number:06}"
    with new_directory(directory / current) as temporary:
        np.flatnonzero(~generation.alive).astype("<i8").tofile(temporary / REMOVED)
        if generation.vectors.settings.kind != "flat":
            generation.vectors.save(temporary / FAISS)
    kept = tuple(f"{name}/" for name in generation.kept)
    digests = {name: digest for name, digest in before.digests.items() if name.startswith(kept)}
    digests |= file_digests(directory, files_below(directory, [current, *names]))
    manifest = dataclasses.replace(
        manifest,
        generation=number,
        settings=generation.vectors.settings,
        documents=int(np.count_nonzero(generation.alive)),
        removed=int(np.count_nonzero(~generation.alive)),
        current=current,
        segments=(*generation.kept, *names),
        digests=digests,
    )
    manifest.write(directory)
    delete_leftovers(directory, manifest)
    return manifest


def delete_leftovers(directory: Path, manifest: IndexManifest) -> None:
    """Deletes what interrupted updates and earlier generations have left in an index."""
    delete_in(directory)
    kept = {*manifest.segments, manifest.current}
    for folder in (_SEGMENTS, _GENERATIONS):
        for path in (directory / folder).glob("*"):
            if f"{folder}/{path.name}" not in kept:
                shutil.rmtree(path)
