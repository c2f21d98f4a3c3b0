"""The documents of an index: ids, titles and texts, shared by all of its halves.

A directory with `hashes` (uint64, of the ids, the order among equal scores) and the ragged stores
`id`, `title`, `text` and `language`.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.data.tokenized_set import RaggedWriter
from tf_smoothclir.index.sparse_files import open_ragged, unfit
from tf_smoothclir.storage.files import open_to_write, write_array

if TYPE_CHECKING:
    import pyarrow as pa

DOCUMENTS = "documents"  # its directory in an index
_HASHES = "hashes"


@contextlib.contextmanager
def document_writer(directory: Path) -> Iterator[Callable[[Sequence[Text]], None]]:
    """Opens a new directory; yields what appends documents."""
    directory.mkdir()
    with contextlib.ExitStack() as stack:
        hashes = stack.enter_context(open_to_write(directory / _HASHES))
        writers = {
            name: stack.enter_context(RaggedWriter(directory, name, "u1")) for name in Text._fields
        }

        def add(documents: Sequence[Text]) -> None:
            write_array(hashes, hash_ids([document.id for document in documents]), "<u8")
            for name, writer in writers.items():
                values = [getattr(document, name).encode() for document in documents]
                writer.add(np.frombuffer(b"".join(values), "u1"), np.array(list(map(len, values))))

        yield add


class DocumentStore:
    """Documents on disk: `fields` of `Text` by name; `hashes`, `[documents]` uint64, of the ids."""

    def __init__(self, directory: Path):
        self.hashes = np.fromfile(directory / _HASHES, "<u8")
        self.fields = {name: _Texts(directory, name) for name in Text._fields}
        for field in self.fields.values():
            if len(field) != len(self):
                raise unfit(field.path)

    def __len__(self) -> int:
        return len(self.hashes)

    def __getitem__(self, position: int) -> Text:
        return Text(*(field[position] for field in self.fields.values()))

    def same_as(self, documents: Sequence[Text]) -> np.ndarray:
        """Positions of documents that are here with the same content; -1 for all others."""
        hashes = hash_ids([document.id for document in documents])
        places = np.searchsorted(self.hashes, hashes, sorter=self._by_hash)
        places = self._by_hash[np.minimum(places, len(self) - 1)]
        return np.where([self[at] == own for at, own in zip(places, documents)], places, -1)

    @functools.cached_property
    def _by_hash(self) -> np.ndarray:
        return np.argsort(self.hashes, kind="stable")

    def positions(self, ids: Sequence[str], among: np.ndarray) -> np.ndarray:
        """The positions of documents, which are looked for `among` some positions first."""
        positions = []
        for id_, hashed in zip(ids, hash_ids(ids)):
            same = among[self.hashes[among] == hashed]
            same = same if len(same) else np.flatnonzero(self.hashes == hashed)
            of_id = self.fields["id"]
            positions.append(next(place for place in same if of_id[place] == id_))
        return np.array(positions, np.int64)


class _Texts:
    """One field of all documents."""

    def __init__(self, directory: Path, name: str):
        self._ends, self._bytes = open_ragged(directory, name, "u1")
        self.path = self._bytes.path

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, position: int) -> str:
        begin, end = self._ends[position : position + 2].tolist()
        return self._bytes.part(begin, end - begin).decode("utf-8", "replace")

    def strings(self) -> pa.Array:
        """The field of all documents."""
        import pyarrow as pa

        values = self._bytes.part(0, len(self._bytes))
        return pa.LargeStringArray.from_buffers(len(self), *map(pa.py_buffer, (self._ends, values)))
