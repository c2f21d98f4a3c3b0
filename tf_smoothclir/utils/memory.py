"""Memory of this process: its peak, and what the C library does with what is free."""

import ctypes
import gc
import os
import re
import resource
import sys
from collections.abc import Mapping
from pathlib import Path

_STATUS = Path("/proc/self/status")
# Of mallopt, by its number.
_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8
_LARGEST = 32 << 20  # bytes of an array; glibc takes no more
_FREE = 256 << 20  # bytes


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    # From /proc on Linux: `getrusage` returns at least the peak of the process that started
    # this one.
    if _STATUS.exists():
        return memory_in_status("VmHWM")
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def memory_in_status(name: str) -> int:
    """A number of bytes that Linux knows of this process, such as `RssAnon`."""
    return int(re.search(rf"^{name}:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)[1]) << 10


def give_back_memory(*, cycles: bool = True) -> None:
    """Gives what nothing refers to back to the system, where the C library is glibc."""
    # It keeps what large arrays leave, hundreds of megabytes, for arrays that fit there. To look
    # for `cycles` of objects that only refer to each other takes 0.2 s beside TensorFlow.
    if cycles:
        gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def reuse_freed_memory() -> None:
    """Keeps what arrays of megabytes leave for the next ones, where the C library is glibc."""
    # It would give it back to the system at once. To get new pages takes as long as half of the
    # work of a query over a million documents. The peak stays about the same.
    _set_options({_MMAP_THRESHOLD: _LARGEST, _TRIM_THRESHOLD: _FREE})


def share_freed_memory() -> None:
    """Lets threads use what others have freed, where the C library is glibc."""
    # It makes eight arenas of memory for each processor, each for a few threads. With one for each
    # a training is as fast, and its peak is lower by 3 to 18%.
    _set_options({_ARENA_MAX: os.cpu_count() or 1})


def _set_options(options: Mapping[int, int]) -> None:
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        for option, value in options.items():
            set_option(option, value)
