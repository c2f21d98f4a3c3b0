"""Rows of different lengths in flat files, memory-mapped; a retrieval set as token ids in them."""

import contextlib
import dataclasses
import os
from pathlib import Path
from typing import Self

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.settings.text import TextSettings
from tf_smoothclir.storage.files import copy_file, open_to_write, write_array
from tf_smoothclir.text.vocabulary import read_vocabulary
from tf_smoothclir.utils.ranges import ranges

_VALUES_PER_PIECE = 1 << 22
_ROWS_PER_PIECE = 1 << 14
ROLES = ("query", "document")
TITLES = "document.titles"  # the lengths of titles, where these are read
WHOLE = "document.whole"  # store of all documents, where `document` cuts any


class RaggedStore:
    """An immutable list of rows, such as the token ids of every document of a collection."""

    # `<name>.values` has all rows one after the other, `<name>.offsets` (int64) where each begins
    # and the last ends: little-endian without a header, so NumPy and TensorFlow can map them.

    def __init__(self, directory: str | os.PathLike, name: str, dtype: str):
        self.path = Path(directory, f"{name}.values")
        self.dtype = np.dtype(dtype)
        self.offsets = np.fromfile(Path(directory, f"{name}.offsets"), "<i8")
        self.values = np.zeros(0, self.dtype)
        if self.path.stat().st_size:  # an empty file cannot be mapped; slices of a memmap take long
            self.values = np.asarray(np.memmap(self.path, self.dtype, mode="r"))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> np.ndarray:
        return self.values[self.offsets[row] : self.offsets[row + 1]]

    @property
    def lengths(self) -> np.ndarray:
        """`[rows]` int64, the number of values in each row."""
        return np.diff(self.offsets)

    def rows(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The values of some rows, one row after the other, and the length of each."""
        begins = self.offsets[rows]
        lengths = self.offsets[rows + 1] - begins
        return self.values[ranges(begins, lengths)], lengths


class RaggedWriter:
    """Writes a `RaggedStore`, batch by batch; a context manager."""

    def __init__(self, directory: str | os.PathLike, name: str, dtype: str | np.dtype):
        self._dtype = np.dtype(dtype)
        self._values = open_to_write(Path(directory, f"{name}.values"))
        self._offsets = open_to_write(Path(directory, f"{name}.offsets"))
        self._end = 0
        write_array(self._offsets, np.zeros(1), "<i8")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc) -> None:
        with contextlib.closing(self._offsets):  # also if the disk is full
            self._values.close()

    def add(self, values: np.ndarray, lengths: np.ndarray) -> None:
        """Appends rows: `[sum of lengths]` values, row after row, and `[rows]` lengths."""
        ends = self._end + np.cumsum(lengths, dtype=np.int64)
        write_array(self._values, values, self._dtype)
        write_array(self._offsets, ends, "<i8")
        if len(ends):
            self._end = int(ends[-1])


def keep_openings(directory: Path, most: int, skipped: np.ndarray | int) -> None:
    """Cuts documents to `most` tokens after some; if that leaves any out, `WHOLE` keeps all."""
    store = RaggedStore(directory, "document", "<i4")
    if store.lengths.max(initial=0) <= most and not np.any(skipped):
        return
    begins = np.minimum(store.offsets[:-1] + skipped, store.offsets[1:])
    for suffix in ("values", "offsets"):
        os.replace(directory / f"document.{suffix}", directory / f"{WHOLE}.{suffix}")
    with RaggedWriter(directory, "document", store.dtype) as writer:
        for first in range(0, len(store), _ROWS_PER_PIECE):
            rows = slice(first, min(first + _ROWS_PER_PIECE, len(store)))
            lengths = np.minimum(store.offsets[1:][rows] - begins[rows], most)
            writer.add(store.values[ranges(begins[rows], lengths)], lengths)


def copy_mapped(
    source: str | os.PathLike, target: str | os.PathLike, name: str, mapping: np.ndarray
) -> None:
    """Writes `target/name.*` with `mapping[value]` for each value of `source/name.*`, in pieces."""
    copy_file(Path(source, f"{name}.offsets"), Path(target, f"{name}.offsets"))
    values, mapped = (Path(directory, f"{name}.values") for directory in (source, target))
    # The pages of a mapped file would count as memory in use.
    with open(values, "rb") as numbers, open_to_write(mapped) as ids:
        while len(piece := np.fromfile(numbers, "<i4", _VALUES_PER_PIECE)):
            write_array(ids, mapping[piece], "<i4")


@dataclasses.dataclass(frozen=True)
class TokenizedSet:
    """A retrieval set whose texts are token ids; `tokenize_set` makes it."""

    retrieval_set: RetrievalSet
    directory: Path  # contains the token stores `query` and `document`
    vocabulary_dir: Path  # contains `query.txt` and `document.txt`, which define the ids
    # With n-grams, every distinct word has an id: words outside the vocabulary have the ids after
    # it, and `ngrams` stands for their spelling.
    settings: TextSettings
    query_directory: Path | None = None  # contains the store `query` if it is not in `directory`

    def tokens(self, role: str) -> RaggedStore:
        """The token ids of every "query" or "document", by row."""
        elsewhere = self.query_directory if role == "query" else None
        return RaggedStore(elsewhere or self.directory, role, "<i4")

    def whole_documents(self) -> RaggedStore:
        """The token ids of every document to its end, where the settings have passages."""
        whole = (self.directory / f"{WHOLE}.values").is_file()
        return RaggedStore(self.directory, WHOLE if whole else "document", "<i4")

    def title_lengths(self) -> np.ndarray | None:
        """`[documents]` int64, how many of their first tokens are the title; None for none."""
        path = self.directory / TITLES
        return np.fromfile(path, "<i8") if path.is_file() else None

    def ngrams(self, role: str) -> RaggedStore | None:
        """The n-gram buckets of every word of a role, by id; None without n-grams."""
        has_ngrams = self.settings.ngram_buckets > 0
        return RaggedStore(self.directory, ngrams_store(role), "<i4") if has_ngrams else None

    def vocabulary(self, role: str) -> list[str]:
        """The tokens of a role; a token's position is its id."""
        return read_vocabulary(self.vocabulary_dir / f"{role}.txt")


def copy_vocabularies(source: Path, target: Path) -> None:
    """Copies the vocabularies of both roles into a new directory."""
    target.mkdir()
    for role in ROLES:
        copy_file(source / f"{role}.txt", target / f"{role}.txt")


def ngrams_store(role: str) -> str:
    """The name of the store that `TokenizedSet.ngrams` opens."""
    return f"{role}.ngrams"
