"""Parts of a file, read when they are asked for.

A look at a mapped file brings the pages around it into the memory of the process, 16 of them on
Linux. So a search that looks at a few rows of each query soon has the whole file there.
"""

import os
import weakref
from pathlib import Path

import numpy as np

from tf_smoothclir.utils.errors import input_error


class RandomAccess:
    """The values of an open file; threads may share it."""

    def __init__(self, path: Path, dtype: str | np.dtype):
        self.path, self._dtype = path, np.dtype(dtype)
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return os.fstat(self._file).st_size // self._dtype.itemsize

    def part(self, begin: int, length: int) -> bytes:
        """The bytes of some values in a row."""
        size = self._dtype.itemsize
        return self._read(size * begin, size * length)

    def parts(self, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The values of `[parts]` parts by begins and lengths, one after the other; read-only."""
        if not len(begins):
            return np.zeros(0, self._dtype)
        # Parts that follow each other in the file, too, are read at once.
        firsts = np.flatnonzero(np.append(True, begins[1:] != (begins + lengths)[:-1]))
        bounds = begins[firsts], np.add.reduceat(lengths, firsts)
        runs = zip(*((self._dtype.itemsize * of).tolist() for of in bounds))
        return np.frombuffer(b"".join([self._read(*run) for run in runs]), self._dtype)

    def _read(self, offset: int, size: int) -> bytes:
        content = os.pread(self._file, size, offset) if size else b""
        while len(content) < size:  # the system may read less at once
            more = os.pread(self._file, size - len(content), offset + len(content))
            if not more:
                raise input_error(self.path, "it ends too early", "Build the index again")
            content += more
        return content


class StoredMatrix:
    """A matrix in a file, whose rows are read when they are asked for: `matrix[rows]`."""

    def __init__(self, path: Path, dtype: str, columns: int):
        self._values = RandomAccess(path, dtype)
        self.shape = len(self._values) // columns, columns

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: np.dtype | None = None, copy: bool | None = None) -> np.ndarray:
        return self[:] if dtype is None else self[:].astype(dtype)

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        numbers = np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
        columns = self.shape[1]
        values = self._values.parts(columns * numbers, np.full(len(numbers), columns))
        return values.reshape(-1, columns)
