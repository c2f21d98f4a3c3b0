"""The peak memory of this process."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """The peak memory of this process, in bytes.

    On Linux it is read from /proc, because `getrusage` returns at least the peak of the process
    that started this one. On other systems it comes from `getrusage`.
    """
    if _STATUS.exists():
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
