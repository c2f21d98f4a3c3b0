"""Writing that leaves the old or the new behind, never half of either."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from absl import logging

from tf_smoothclir.utils.errors import input_error

_SUFFIX = ".new"  # of what is not whole yet
_RANDOM = re.compile(r"[0-9a-z_]{8}\.new")
_UNFINISHED = re.compile(rf"\..+\.{_RANDOM.pattern}")
_FORMER = "former"
_SECONDS_TO_LOCK = 60


def make_directory(path: str | os.PathLike, flag: str) -> Path:
    """Makes a directory that can be written to.

    Raises:
        InputError: Where that is not possible; names `flag`, such as "--output_dir".
    """
    path = Path(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise input_error(
            f"{flag}={path}",
            f"the directory cannot be written to ({error.strerror})",
            "Choose another one, or change its permissions",
        ) from error
    return path


@contextlib.contextmanager
def scratch_directory(parent: Path, name: str) -> Iterator[Path]:
    """Yields a new hidden directory below `parent`, which is deleted at the end.

    One that a killed process has left there is deleted by the next process on the same machine that
    wants one of the same `name`.
    """
    prefix = f".{name}.{os.uname().nodename}."
    for left in parent.iterdir():
        if left.name.startswith(prefix) and _RANDOM.fullmatch(left.name[len(prefix) :]):
            _delete_if_left(left)
    path = Path(tempfile.mkdtemp(prefix=prefix, suffix=_SUFFIX, dir=parent))
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield path
    finally:
        os.close(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def _delete_if_left(path: Path) -> None:
    """Deletes a directory of `scratch_directory` whose process is gone."""
    with contextlib.suppress(OSError):  # of a file system without locks, or gone meanwhile
        if time.time() - path.stat().st_mtime < _SECONDS_TO_LOCK or (path / _FORMER).exists():
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def new_directory(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yields a temporary directory beside `path` that is renamed to `path` at the end.

    On an error, nothing is left behind. Where `path` has come to exist meanwhile, that one stays,
    or, with `replace`, goes when the new one is on the disk.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory(path.parent, path.name) as scratch:
        temporary, former = scratch / "new", scratch / _FORMER
        temporary.mkdir()
        yield temporary
        for file in temporary.rglob("*"):
            if file.is_file():
                flush_to_disk(file)
        temporary.chmod(0o755)
        if replace and path.is_dir():
            os.rename(path, former)  # killed here, it is kept in the hidden directory
        try:
            os.rename(temporary, path)
        except OSError:
            if former.exists():
                os.rename(former, path)
                raise
            if not path.is_dir():
                raise


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a UTF-8 text file, at once or not at all; of several writers, the last one's stays."""
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{os.urandom(4).hex()}{_SUFFIX}")
    try:
        temporary.write_text(text, encoding="utf-8")
        flush_to_disk(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def is_unfinished(name: str) -> bool:
    """Returns whether something of this name is what a killed process has left behind."""
    return _UNFINISHED.fullmatch(name) is not None


def names_in(directory: Path) -> set[str]:
    """Returns the names in a directory, but of what killed processes have left behind."""
    return {name for name in os.listdir(directory) if not is_unfinished(name)}


def delete_in(directory: Path, names: Iterable[str] = ()) -> None:
    """Deletes files and directories, in this order, then what killed processes have left behind.

    Args:
        directory: Where they are.
        names: Of what is there or not.
    """
    for name in (*names, *filter(is_unfinished, os.listdir(directory))):
        path = directory / name
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def write_json(path: str | os.PathLike, value) -> None:
    """Writes a JSON file, indented, at once or not at all; NaN is an error."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike):
    """Reads a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


@contextlib.contextmanager
def locked(path: Path, place: object, reason: str, remedy: str) -> Iterator[None]:
    """Keeps other processes out; the system lets go of it when this one ends, killed too.

    Where a file system knows no locks, as some of remote storage do, nobody is kept out.

    Args:
        path: Of the lock, a file that is made where it is missing.
        place: For the error, as for `input_error`; so the next two.
        reason: What another process is at.
        remedy: What to do.

    Raises:
        InputError: Another process holds the lock.
    """
    with open(path, "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise input_error(place, reason, remedy) from None
        except OSError as error:
            logging.warning("%s cannot be locked: %s", path, error.strerror)
        yield


@contextlib.contextmanager
def standard_error_in(path: str | os.PathLike) -> Iterator[None]:
    """Adds to a file what goes to standard error, from C++ and from new processes too."""
    sys.stderr.flush()
    kept = os.dup(2)
    with open(path, "ab") as file:
        os.dup2(file.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def flush_to_disk(path: Path) -> None:
    """Flushes a file, or which files a directory has."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
