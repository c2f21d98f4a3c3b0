"""Parts of a file, read when they are asked for.

A look at a mapped file brings the pages around it into the memory of the process, 16 of them on
Linux. So a search that looks at a few rows of each query soon has the whole file there.
"""

from __future__ import annotations

import os
import weakref
from pathlib import Path

import numpy as np

from tf_smoothclir.utils.errors import input_error


class RandomAccess:
    """The values of an open file; threads may share it."""

    def __init__(self, path: Path, dtype: str):
        self.path, self._dtype = path, np.dtype(dtype)
        self._file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return os.fstat(self._file).st_size // self._dtype.itemsize

    def parts(self, begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
        """The values of some parts, one part after the other.

        Args:
            begins: `[parts]` int, where each begins.
            lengths: `[parts]` int, how many values it has.
        """
        values = np.empty(lengths.sum(), self._dtype)
        if not len(values):
            return values
        content, end = memoryview(values).cast("B"), 0
        # Parts that follow each other in the file, too, are read at once.
        firsts = np.flatnonzero(np.append(True, begins[1:] != (begins + lengths)[:-1]))
        runs = np.add.reduceat(lengths, firsts)
        for offset, size in (self._dtype.itemsize * np.stack([begins[firsts], runs], 1)).tolist():
            while size:  # the system may read less at once
                read = os.preadv(self._file, [content[end : end + size]], offset)
                if not read:
                    raise input_error(self.path, "it ends too early", "Build the index again")
                end, offset, size = end + read, offset + read, size - read
        return values
