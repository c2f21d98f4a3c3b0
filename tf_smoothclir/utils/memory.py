"""Memory of this process: its peak, and what is free."""

from __future__ import annotations

import ctypes
import gc
import re
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """The peak memory of this process, in bytes."""
    # From /proc on Linux: `getrusage` returns at least the peak of the process that started
    # this one.
    if _STATUS.exists():
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def give_back_memory() -> None:
    """Gives what nothing refers to back to the system, where the C library is glibc."""
    # It keeps what large arrays leave, hundreds of megabytes, for arrays that fit there.
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
