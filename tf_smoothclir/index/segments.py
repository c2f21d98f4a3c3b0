"""The files of an index: segments of documents with their vectors.

A segment is an immutable directory: `vectors` (float32, row after row), `hashes` (uint64,
of the ids, the order among equal scores) and the ragged stores `id`, `title` and `text`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.ragged_store import RaggedStore, RaggedWriter
from tf_smoothclir.data.sources.source import Text

_CHUNK = 1 << 16  # vectors read at a time


class SegmentWriter:
    """A context manager that writes a segment, batch by batch."""

    def __init__(self, directory: Path):
        """Creates the files of a segment in an empty directory."""
        self._vectors = open(directory / "vectors", "wb")  # noqa: SIM115
        self._hashes = open(directory / "hashes", "wb")  # noqa: SIM115
        self._fields = {name: RaggedWriter(directory, name, "u1") for name in Text._fields}

    def __enter__(self) -> SegmentWriter:
        return self

    def __exit__(self, *exc) -> None:
        self._vectors.close()
        self._hashes.close()
        for writer in self._fields.values():
            writer.__exit__(*exc)

    def add(self, documents: Sequence[Text], vectors: np.ndarray) -> None:
        """Appends documents.

        Args:
            documents: Their ids, titles and texts.
            vectors: `[documents, dim]` float32.
        """
        vectors.astype("<f4", copy=False).tofile(self._vectors)
        hash_ids([document.id for document in documents]).astype("<u8").tofile(self._hashes)
        for name, writer in self._fields.items():
            values = [getattr(document, name).encode() for document in documents]
            writer.add(np.frombuffer(b"".join(values), "u1"), np.array(list(map(len, values))))


class Segments:
    """The documents of several segments in order, memory-mapped.

    Attributes:
        hashes: `[documents]` uint64, hashes of the ids.
    """

    def __init__(self, directories: Sequence[Path], dim: int):
        """Opens the segments in `directories`; their vectors have length `dim`."""
        self._vectors = [
            np.memmap(path / "vectors", "<f4", mode="r").reshape(-1, dim) for path in directories
        ]
        self._fields = [
            [RaggedStore(path, name, "u1") for name in Text._fields] for path in directories
        ]
        hashes = [np.fromfile(path / "hashes", "<u8") for path in directories]
        self.hashes = np.concatenate(hashes)
        self._starts = np.cumsum([0, *map(len, hashes)])
        self._dim = dim

    def __len__(self) -> int:
        return len(self.hashes)

    def vectors(self, positions: np.ndarray) -> np.ndarray:
        """Returns the vectors at `positions`, `[positions, dim]` float32."""
        taken = np.empty((len(positions), self._dim), np.float32)
        segments = self._segments_of(positions)
        for segment in np.unique(segments):
            rows = segments == segment
            taken[rows] = self._vectors[segment][positions[rows] - self._starts[segment]]
        return taken

    def chunks(self) -> Iterator[np.ndarray]:
        """Yields all vectors in order, `[at most 65,536, dim]` at a time."""
        for vectors in self._vectors:
            for begin in range(0, len(vectors), _CHUNK):
                yield np.ascontiguousarray(vectors[begin : begin + _CHUNK], np.float32)

    def document(self, position: int) -> Text:
        """Returns the document at a position."""
        segment = int(self._segments_of(position))
        row = position - self._starts[segment]
        return Text(*(bytes(field[row]).decode() for field in self._fields[segment]))

    def positions_of(self, ids: Sequence[str], alive: np.ndarray) -> np.ndarray:
        """Finds documents by their ids.

        Args:
            ids: Ids of documents.
            alive: `[documents]` bool, the documents to search.

        Returns:
            `[ids]` int64 positions, -1 for an id without a document.
        """
        living = np.flatnonzero(alive)
        living = living[np.argsort(self.hashes[living], kind="stable")]
        known, wanted = self.hashes[living], hash_ids(ids)
        begins, ends = (np.searchsorted(known, wanted, side) for side in ("left", "right"))
        return np.array(
            [
                next((p for p in living[begin:end] if self.document(p).id == id_), -1)
                for id_, begin, end in zip(ids, begins, ends)
            ],
            np.int64,
        )

    def same_ids(self) -> tuple[int, int] | None:
        """Returns the positions of two documents with the same id, or None."""
        order = np.argsort(self.hashes, kind="stable")
        for place in np.flatnonzero(np.diff(self.hashes[order]) == 0):
            first, second = order[place : place + 2]
            if self.document(first).id == self.document(second).id:
                return int(first), int(second)
        return None

    def _segments_of(self, positions):
        return np.searchsorted(self._starts, positions, "right") - 1


def link_files(source: Path, target: Path) -> None:
    """Puts the files of one directory into another, by hard links where possible."""
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:  # another file system, or one without hard links
            (target / path.name).write_bytes(path.read_bytes())
