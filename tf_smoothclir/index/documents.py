"""The documents of an index: ids, titles and texts, shared by all of its halves.

A directory with `hashes` (uint64, of the ids, the order among equal scores) and the ragged stores
`id`, `title` and `text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.ragged_store import RaggedStore, RaggedWriter
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.sparse_files import check_ends, unfit
from tf_smoothclir.storage.files import open_to_write, write_array

DOCUMENTS = "documents"  # its directory in an index
_HASHES = "hashes"


class DocumentWriter:
    """A context manager that writes documents, batch by batch."""

    def __init__(self, directory: Path):
        directory.mkdir()
        self._hashes = open_to_write(directory / _HASHES)
        self._fields = {name: RaggedWriter(directory, name, "u1") for name in Text._fields[:3]}

    def __enter__(self) -> DocumentWriter:
        return self

    def __exit__(self, *exc) -> None:
        self._hashes.close()
        for writer in self._fields.values():
            writer.__exit__(*exc)

    def add(self, documents: Sequence[Text]) -> None:
        """Appends documents."""
        write_array(self._hashes, hash_ids([document.id for document in documents]), "<u8")
        for name, writer in self._fields.items():
            values = [getattr(document, name).encode() for document in documents]
            writer.add(np.frombuffer(b"".join(values), "u1"), np.array(list(map(len, values))))


class DocumentStore:
    """The documents of a directory, memory-mapped.

    Attributes:
        hashes: `[documents]` uint64, hashes of the ids.
    """

    def __init__(self, directory: Path):
        self.hashes = np.fromfile(directory / _HASHES, "<u8")
        self._fields = [RaggedStore(directory, name, "u1") for name in Text._fields[:3]]
        for field in self._fields:
            check_ends(field.path, field.offsets, len(field.values))
            if len(field) != len(self):
                raise unfit(field.path)

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, position: int) -> Text:
        return Text(*(bytes(field[position]).decode("utf-8", "replace") for field in self._fields))

    def same_ids(self) -> tuple[int, int] | None:
        """The positions of two documents with the same id, or None."""
        order = np.argsort(self.hashes, kind="stable")
        for place in np.flatnonzero(np.diff(self.hashes[order]) == 0):
            first, second = order[place : place + 2]
            if self[first].id == self[second].id:
                return int(first), int(second)
        return None
