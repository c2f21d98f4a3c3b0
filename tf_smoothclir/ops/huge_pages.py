"""Large pages of memory for large tables: rows that lie far apart are then found faster."""

from __future__ import annotations

import ctypes
import mmap
import sys
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

_BYTES = 2 << 20
_MADV_COLLAPSE = 25  # Linux 6.1 and newer: at once, not when the kernel finds the time


def use_huge_pages(variables: Iterable[tf.Variable]) -> int:
    """Asks Linux to hold variables in pages of 2 MB instead of 4 kB.

    A step reads thousands of rows all over a table; with small pages most of them cost a walk
    through the page tables too. Values do not change. Elsewhere than on Linux, on a GPU, or where
    the kernel refuses, nothing happens.

    Args:
        variables: Of which those that fill such pages are taken.

    Returns:
        How many bytes were asked for.
    """
    if not sys.platform.startswith("linux"):
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    asked = 0
    for variable in variables:
        value = variable.read_value()
        if (
            not value.device.endswith("CPU:0")
            or value.dtype.size * value.shape.num_elements() < _BYTES
        ):
            continue
        memory = np.asarray(memoryview(value))  # the variable's own: `numpy()` would copy it
        begin = -(-memory.ctypes.data // _BYTES) * _BYTES
        size = (memory.ctypes.data + memory.nbytes) // _BYTES * _BYTES - begin
        if size > 0 and advise(begin, size, mmap.MADV_HUGEPAGE) == 0:
            advise(begin, size, _MADV_COLLAPSE)
            asked += size
    return asked
