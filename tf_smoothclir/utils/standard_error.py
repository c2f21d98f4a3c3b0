"""Standard error, of this process and of what it starts, in a file."""

import contextlib
import os
import sys
from collections.abc import Iterator


@contextlib.contextmanager
def standard_error_in(path: str | os.PathLike) -> Iterator[None]:
    """Appends standard error to a file, also from C++ and from new processes."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
