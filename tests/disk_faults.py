"""Disks that fill, that may lose what was not flushed before it got a name, or fail at one call.

Of losing: Pillai et al., All File Systems Are Not Created Equal (OSDI 2014).
"""

import contextlib
import itertools
import os
import resource
from pathlib import Path

from tf_smoothclir.storage import files


class Crash(Exception):
    """Ends whatever runs, at a place that a test has chosen."""


@contextlib.contextmanager
def room_for(size):
    """Lets no file of this process grow beyond `size` bytes; writing more is an OSError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))  # Python ignores SIGXFSZ
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextlib.contextmanager
def flushed_before_named(monkeypatch, look=lambda: None):
    """Checks that files are flushed, then renamed, then their names flushed; looks at each name."""
    flushed, unflushed_names, fsync = set(), set(), os.fsync

    def flush(descriptor):
        fsync(descriptor)
        status = os.fstat(descriptor)
        flushed.add((status.st_ino, status.st_mtime_ns))
        unflushed_names.discard(status.st_ino)

    def checked(rename):
        def check_and_rename(source, target):
            is_seen = not any(map(files.is_unfinished, Path(target).parts))
            for path in (Path(source), *Path(source).rglob("*")) if is_seen else ():
                status = path.stat()
                assert (status.st_ino, status.st_mtime_ns) in flushed, path
            rename(source, target)
            if is_seen:
                unflushed_names.add(Path(target).parent.stat().st_ino)
                look()

        return check_and_rename

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", flush)
        for owner, name in ((os, "rename"), (os, "replace"), (files, "exchange")):
            patch.setattr(owner, name, checked(getattr(owner, name)))
        yield
    assert flushed
    assert not unflushed_names


def at_call(number, function, fault):
    """`function`, whose call `number`, from 1, is preceded by `fault()`."""
    calls = itertools.count(1)

    def faulty(*arguments, **keywords):
        if next(calls) == number:
            fault()
        return function(*arguments, **keywords)

    return faulty
