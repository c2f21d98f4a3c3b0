"""A disk that fills: no file grows beyond a number of bytes."""

import contextlib
import resource


@contextlib.contextmanager
def room_for(size):
    """Lets no file of this process grow beyond `size` bytes; writing more is an OSError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))  # Python ignores SIGXFSZ
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
