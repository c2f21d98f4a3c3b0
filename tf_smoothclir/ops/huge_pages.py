"""Huge pages of memory for large tables.

Why they are here: a step reads thousands of rows all over a table. With pages of 4 kB, most of them
cost a walk through the page tables too. `python -m benchmarks.scaling` measures a step by the
number of rows.

When they may go: where the kernel gives huge pages by itself (transparent huge pages set to
"always"), or when a step is not slower without them.
"""

import ctypes
import mmap
import sys
from collections.abc import Iterable

import numpy as np
import tensorflow as tf

_BYTES = 2 << 20
_MADV_COLLAPSE = 25  # Linux 6.1 and newer: at once instead of in the background


def use_huge_pages(variables: Iterable[tf.Variable]) -> int:
    """Asks Linux for pages of 2 MB for variables, whose values do not change; the bytes in them."""
    # It does nothing on other systems, for variables on a GPU or smaller than such a page, and
    # if the kernel refuses.
    if not sys.platform.startswith("linux"):
        return 0
    advise = ctypes.CDLL(None).madvise
    advise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    asked = 0
    for variable in variables:
        if (
            not variable.device.endswith("CPU:0")
            or variable.dtype.size * variable.shape.num_elements() < _BYTES
        ):
            continue
        with tf.device(variable.device):  # beside a GPU, a value is copied there by default
            # Or a table whose rows have been set would be copied, and TensorFlow keeps that memory.
            tf.raw_ops.DisableCopyOnRead(resource=variable.handle)
            value = variable.read_value()
        memory = np.asarray(memoryview(value))  # the variable's own: `numpy()` would copy it
        begin = -(-memory.ctypes.data // _BYTES) * _BYTES
        size = (memory.ctypes.data + memory.nbytes) // _BYTES * _BYTES - begin
        if size > 0 and advise(begin, size, mmap.MADV_HUGEPAGE) == 0:
            advise(begin, size, _MADV_COLLAPSE)
            asked += size
    return asked
