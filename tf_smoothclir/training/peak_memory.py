"""The most memory that a process has had."""

from __future__ import annotations

import re
import resource
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_memory() -> int:
    """Returns the most memory that this program has had, in bytes.

    On Linux from its own status: what `getrusage` says is at least what the process had that
    started it. Elsewhere from `getrusage`.
    """
    if _STATUS.exists():
        return int(re.search(r"^VmHWM:\s+(\d+) kB$", _STATUS.read_text(), re.MULTILINE)[1]) << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
