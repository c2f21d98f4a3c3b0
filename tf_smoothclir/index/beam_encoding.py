"""Encoding a very large collection with Apache Beam, on many machines.

It writes segments as `encode_segments` does, so the index is assembled in the same way. All Beam
workers must be able to reach the work directory next to the index and the export, for
example on a network file system.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.document_collections import FileCollection
from tf_smoothclir.index.encoding import mark_complete, size_if_whole, write_segment
from tf_smoothclir.index.export_halves import export_halves
from tf_smoothclir.index.halves import Half
from tf_smoothclir.utils.beam import load_beam, new_pipeline
from tf_smoothclir.utils.errors import input_error

_BYTES_PER_SEGMENT = 1 << 26


class BeamEncoder:
    """Encodes a collection in a Beam pipeline; takes the place of `encode_segments`."""

    def __init__(self, export_dir: str | os.PathLike, version: int, options: Sequence[str]):
        self._export = (os.fspath(Path(export_dir).absolute()), version)
        self._options = list(options)

    def __call__(
        self, work: Path, collection: FileCollection, halves: Sequence[Half]
    ) -> list[Path]:
        """Encodes the segments of a collection that are not there yet."""
        del halves
        beam = load_beam()
        if not isinstance(collection, FileCollection):
            raise input_error(
                "--beam", "it reads only collections of files", "Give the files with --collection"
            )
        paths = [os.fspath(path.absolute()) for path in collection.paths]
        segments = max(1, sum(map(os.path.getsize, paths)) // _BYTES_PER_SEGMENT)
        write = functools.partial(_write_segment, os.fspath(work.absolute()), *self._export)
        with new_pipeline(self._options) as pipeline:
            _ = (
                pipeline
                | "Files" >> beam.Create(paths)
                | "One by one" >> beam.Reshuffle()
                | "Read" >> beam.FlatMap(_numbered_documents, segments)
                | "Segments" >> beam.GroupByKey()
                | "Encode" >> beam.Map(write)
            )
        return mark_complete(work, sorted(work.glob("part-*")))


def _numbered_documents(path: str, segments: int) -> Iterator[tuple[int, tuple[str, str, str]]]:
    for text in FileCollection([Path(path)]).documents():
        yield int(hash_ids([text.id])[0] % np.uint64(segments)), tuple(text)


def _write_segment(
    work: str, export_dir: str, version: int, segment: tuple[int, Iterable[tuple[str, str, str]]]
) -> None:
    """Encodes and writes a segment, unless that has been done before."""
    number, documents = segment
    path = Path(work, f"part-{number:06}")
    if not size_if_whole(path):
        texts = (Text(*fields) for fields in documents)
        write_segment(path, texts, _halves(export_dir, version), lambda number: None)


@functools.lru_cache(1)
def _halves(export_dir: str, version: int) -> list[Half]:
    """Loads the models, once per Beam worker."""
    return export_halves(export_dir, version=version).halves
