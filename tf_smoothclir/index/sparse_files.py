"""Sparse rows on disk, and memory-mapped postings that bound their values."""

import contextlib
import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from tf_smoothclir.data.tokenized_set import RaggedWriter
from tf_smoothclir.lexical.posting_bounds import (
    BLOCK,
    PostingBounds,
    blocks_of,
    filled_bounds,
    step_of,
)
from tf_smoothclir.lexical.postings import Rows, SparseRows
from tf_smoothclir.lexical.sparse_tables import ends_of
from tf_smoothclir.storage.files import naming, open_to_write, write_array
from tf_smoothclir.storage.random_access import RandomAccess
from tf_smoothclir.utils import sparse as sp
from tf_smoothclir.utils.errors import InputError, input_error

_ROWS_AT_ONCE = 1 << 14
_ENTRY = np.dtype([("id", "<i4"), ("value", "<f4")])  # of a row
Chunks = Callable[[], Iterator[sp.csr_array]]  # of rows, one after the other, for each call


@contextlib.contextmanager
def sparse_writer(directory: Path, name: str) -> Iterator[Callable[[sp.csr_array], None]]:
    """Yields what appends `[rows, columns]` float32 to the rows of a sparse matrix."""
    # They are the ragged store `<name>` of columns and values.
    with RaggedWriter(directory, name, _ENTRY) as entries:

        def add(rows: sp.csr_array) -> None:
            content = np.empty(rows.nnz, _ENTRY)
            content["id"], content["value"] = rows.indices, rows.data
            entries.add(content, np.diff(rows.indptr))

        yield add


@dataclasses.dataclass(frozen=True)
class RowsOnDisk(Rows):
    """Rows of which memory holds only `ends`."""

    file: RandomAccess

    def _parts(self, begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        entries = self.file.parts(begins, lengths)
        return entries["id"], entries["value"]


def open_rows(directory: Path, name: str) -> RowsOnDisk:
    """Opens what `sparse_writer` wrote."""
    return RowsOnDisk(*open_ragged(directory, name, _ENTRY))


def open_ragged(
    directory: Path, name: str, dtype: str | np.dtype
) -> tuple[np.ndarray, RandomAccess]:
    """Opens a `RaggedStore` to read some of its rows: their ends, and all values."""
    ends = np.fromfile(directory / f"{name}.offsets", "<i8")
    values = RandomAccess(directory / f"{name}.values", dtype)
    check_ends(values.path, ends, len(values))
    return ends, values


def delete_rows(directory: Path, name: str) -> None:
    """Deletes what `sparse_writer` wrote, if it is there."""
    for kind in ("values", "offsets"):
        (directory / f"{name}.{kind}").unlink(missing_ok=True)


def matrices(rows: Rows, columns: int) -> Iterator[sp.csr_array]:
    """Yields all rows in order, some at a time, `[rows, columns]` float32."""
    for begin in range(0, len(rows), _ROWS_AT_ONCE):
        yield matrix_of(rows, np.arange(begin, min(begin + _ROWS_AT_ONCE, len(rows))), columns)


def matrix_of(rows: Rows, some: np.ndarray, columns: int) -> sp.csr_array:
    """Some rows as a matrix, `[rows, columns]` float32."""
    ids, values, lengths = map(np.ascontiguousarray, rows.entries(some))
    return sp.csr_array((values, ids, ends_of(lengths)), shape=(len(some), columns))


def column_lengths(chunks: Iterable[sp.csr_array], rows: int, columns: int) -> np.ndarray:
    """Number of rows that have each column, `[columns, blocks of rows]` int64, of all chunks."""
    blocks, first = blocks_of(rows), 0
    lengths = np.zeros(columns * blocks, np.int64)
    for some in chunks:
        block_numbers = np.arange(first, first + some.shape[0]) // BLOCK
        lists = some.indices * blocks + np.repeat(block_numbers, np.diff(some.indptr))
        lengths += np.bincount(lists, minlength=len(lengths))
        first += some.shape[0]
    return lengths.reshape(columns, blocks)


def write_postings(
    directory: Path, name: str, chunks: Chunks, rows: int, lengths: np.ndarray
) -> None:
    """Writes the postings of rows into a directory; `lengths` are those of `column_lengths`."""

    def allocate(field: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
        return map_array(directory / f"{name}.{field}", dtype, shape, mode="w+")

    largest = max((some.data.max(initial=0) for some in chunks()), default=0)
    postings = filled_bounds(chunks(), lengths, rows, step_of(largest), allocate)
    for field, array, dtype in (
        ("ends", postings.rare.ends, "<i8"),
        ("common", postings.common, "<i4"),
        ("step", np.array([postings.step]), "<f4"),
    ):
        with open_to_write(directory / f"{name}.{field}") as file:
            write_array(file, array, dtype)
    for array in (postings.rare.ids, postings.rare.values, postings.common_values):
        if isinstance(array, np.memmap):
            array.flush()


def open_postings(directory: Path, name: str, rows: int) -> PostingBounds:
    """Opens what `write_postings` wrote."""
    if not (of_step := directory / f"{name}.step").is_file():
        raise unfit(of_step)  # an index of before there were bounds
    (step,) = map_array(of_step, "<f4", (1,))
    ends = np.fromfile(directory / f"{name}.ends", "<i8")
    common = np.fromfile(directory / f"{name}.common", "<i4")
    path = directory / f"{name}.ids"
    check_ends(path, ends, path.stat().st_size // 2)
    words, unused = divmod(len(ends) - 1, blocks_of(rows))
    if unused or (np.diff(common, prepend=-1, append=words) <= 0).any():
        raise unfit(directory / f"{name}.common")
    ids, bounds = (
        map_array(directory / f"{name}.{field}", dtype, (ends[-1],))
        for field, dtype in (("ids", "<u2"), ("bounds", "u1"))
    )
    common_bounds = map_array(directory / f"{name}.common_bounds", "u1", (len(common), rows))
    return PostingBounds(SparseRows(ends, ids, bounds), common, common_bounds, step=float(step))


def check_ends(path: Path, ends: np.ndarray, values: int) -> None:
    """Checks that rows lie one after the other in a file of so many values."""
    if not len(ends) or ends[0] or ends[-1] != values or (np.diff(ends) < 0).any():
        raise unfit(path)


def unfit(path: Path) -> InputError:
    """The error for a file of an index that is not one that was written with the others."""
    return input_error(path, "it does not fit the files beside it", "Build the index again")


def map_array(path: Path, dtype: str, shape: tuple[int, ...], mode: str = "r") -> np.ndarray:
    """Maps a file; an empty one, which cannot be mapped, is made if it is new."""
    if 0 in shape:
        path.touch()
        return np.zeros(shape, dtype)
    if mode == "w+":  # a page that finds no room when it is written would kill the process
        with naming(path), open_to_write(path) as file:
            os.posix_fallocate(file.fileno(), 0, int(math.prod(shape)) * np.dtype(dtype).itemsize)
        mode = "r+"
    elif path.stat().st_size != int(math.prod(shape)) * np.dtype(dtype).itemsize:
        raise unfit(path)
    mapped = np.memmap(path, dtype, mode=mode, shape=tuple(map(int, shape)))
    return mapped if mode == "r+" else np.asarray(mapped)
