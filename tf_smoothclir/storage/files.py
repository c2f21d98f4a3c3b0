"""Files and directories that are written completely or not at all; locks.

Links are followed, as the shell follows them: what they lead to is written, and they stay.
"""

import contextlib
import ctypes
import fcntl
import io
import json
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, TextIO, TypeVar

import numpy as np

from tf_smoothclir.utils.errors import input_error, is_full_disk
from tf_smoothclir.utils.paths import local_path
from tf_smoothclir.utils.records import record_from_json

_RecordT = TypeVar("_RecordT")

_SUFFIX = ".new"  # of unfinished files and directories
_UNLOCKED = ".begun"  # of directories for the moment before they are locked
_RANDOM = re.compile(r"[0-9a-z_]{8}\.(new|begun)")
_UNFINISHED = re.compile(rf"\..+\.{_RANDOM.pattern}")
_NEW, _FORMER = "new", "former"
_HERE, _EXCHANGE = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
_SECONDS_TO_LOCK = 60


def make_directory(path: str | os.PathLike, flag: str) -> Path:
    """Creates a directory if it is missing, and checks that it can be written to."""
    path = Path(local_path(path, flag))
    with _in_words(f"{flag}={path}"):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    return path


@contextlib.contextmanager
def _in_words(where: object) -> Iterator[None]:
    """Says of a directory that it cannot be written to; a full disk is another matter."""
    try:
        yield
    except OSError as error:
        if is_full_disk(error):
            raise
        reason = f"the directory cannot be written to ({error.strerror})"
        remedy = "Choose another one, or change its permissions"
        raise input_error(str(where), reason, remedy) from error


def check_output_file(path: str | os.PathLike, flag: str) -> None:
    """Checks that a file can be written, before the work whose result it will get."""
    target = Path(os.path.realpath(path) if os.path.islink(path) else path)
    if target.is_dir() or target.is_symlink():
        reason = "it is a directory" if target.is_dir() else "its links lead in a circle"
        raise input_error(f"{flag}={os.fspath(path)}", reason, "Name a file")
    if _stream(path) is None:
        make_directory(target.parent, flag)


@contextlib.contextmanager
def scratch_directory(parent: Path, name: str) -> Iterator[Path]:
    """Yields a new hidden directory, and deletes it at the end; first, those of the killed."""
    with _in_words(parent):
        sweep_scratch(parent, name)
        prefix = _scratch_prefix(name)
        unlocked = Path(tempfile.mkdtemp(prefix=prefix, suffix=_UNLOCKED, dir=parent))
    path = unlocked.with_suffix(_SUFFIX)
    descriptor = os.open(unlocked, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.rename(unlocked, path)  # from now on, it is not locked only if its process is gone
        yield path
    finally:
        os.close(descriptor)
        shutil.rmtree(path, ignore_errors=True)


def sweep_scratch(parent: Path, name: str) -> None:
    """Deletes what killed processes of this machine left of `scratch_directory`."""
    prefix = _scratch_prefix(name)
    for left in parent.iterdir():
        if left.name.startswith(prefix) and _RANDOM.fullmatch(left.name[len(prefix) :]):
            _delete_if_left(left)


def _scratch_prefix(name: str) -> str:
    return f".{name}.{os.uname().nodename}."


def _delete_if_left(path: Path) -> None:
    """Deletes a directory of `scratch_directory` if its process is gone."""
    with contextlib.suppress(OSError):  # the file system has no locks, or it is deleted already
        is_young = time.time() - path.stat().st_mtime < _SECONDS_TO_LOCK
        if is_young and path.suffix == _UNLOCKED:
            return
        descriptor = os.open(path, os.O_RDONLY)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path)
        finally:
            os.close(descriptor)


@contextlib.contextmanager
def new_directory(path: Path, *, replace: bool = False) -> Iterator[Path]:
    """Yields a temporary directory next to `path`, and renames it to `path` at the end."""
    # After an error, nothing is left. If `path` exists by then, it stays; with `replace`, it is
    # replaced in one step.
    path = Path(os.path.realpath(path))
    with _in_words(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory(path.parent, path.name) as scratch:
        temporary = scratch / _NEW
        temporary.mkdir()
        yield temporary
        flush_all(temporary)
        if replace and path.is_dir():
            exchange(temporary, path)
        else:
            try:
                os.rename(temporary, path)
            except OSError:
                if not path.is_dir():
                    raise
        flush_to_disk(path.parent)  # else its name may be lost with the power


def exchange(one: Path, other: Path) -> None:
    """Exchanges two directories of one file system, in one step where the system can."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    paths = os.fsencode(one), os.fsencode(other)
    if renameat2 and not renameat2(_HERE, paths[0], _HERE, paths[1], _EXCHANGE):
        return
    former = one.with_name(_FORMER)  # some network file systems, and macOS
    os.rename(other, former)
    try:
        os.rename(one, other)
    except OSError:
        os.rename(former, other)
        raise
    os.rename(former, one)


def discard_directory(path: Path) -> None:
    """Deletes a directory as one step: no process sees half of it, whenever this one is killed."""
    path = Path(os.path.realpath(path))
    with (
        scratch_directory(path.parent, path.name) as scratch,
        contextlib.suppress(FileNotFoundError),
    ):
        os.rename(path, scratch / "discarded")


def write_text(path: str | os.PathLike, text: str) -> None:
    """Writes a UTF-8 text file; see `write_bytes`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | os.PathLike, content: bytes) -> None:
    """Writes a file completely or not at all; of several writers, the last one wins."""
    # It keeps the permissions of a file that it replaces. A pipe, a device or the file of standard
    # output gets the bytes.
    if (stream := _stream(path)) is not None:
        sys.stdout.flush()
        with naming(path), open(stream, "wb", closefd=stream is path) as opened:
            opened.write(content)
        return
    target = Path(os.path.realpath(path))
    with scratch_directory(target.parent, target.name) as scratch:
        temporary = scratch / _NEW
        with naming(path):
            temporary.write_bytes(content)
        with contextlib.suppress(FileNotFoundError):
            shutil.copymode(target, temporary)
        flush_to_disk(temporary)
        os.replace(temporary, target)
        flush_to_disk(target.parent)


def _stream(path: str | os.PathLike) -> int | str | os.PathLike | None:
    """What takes the bytes for a path where no new file can take its place: it, or a descriptor."""
    try:
        there = os.stat(path)
    except OSError:
        return None
    for descriptor in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            if os.path.samestat(os.fstat(descriptor), there):
                return descriptor
    own_place = os.access(os.path.dirname(os.path.realpath(path)), os.W_OK)
    return None if stat.S_ISREG(there.st_mode) and own_place else path


def is_unfinished(name: str) -> bool:
    """Whether a name is that of a file or directory left behind by a killed process."""
    return _UNFINISHED.fullmatch(name) is not None


def names_in(directory: Path) -> set[str]:
    """The names in a directory, except those left behind by killed processes."""
    return {name for name in os.listdir(directory) if not is_unfinished(name)}


def delete_in(directory: Path, names: Iterable[str] = ()) -> None:
    """Deletes files and directories in the given order, then those left by killed processes."""
    for name in (*names, *filter(is_unfinished, os.listdir(directory))):
        path = directory / name
        is_own = path.is_dir() and not path.is_symlink()
        shutil.rmtree(path) if is_own else path.unlink(missing_ok=True)


def write_json(path: str | os.PathLike, value) -> None:
    """Writes an indented JSON file completely or not at all; NaN raises ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | os.PathLike):
    """Reads a JSON file; ValueError if it is none. No pipe or endless device is waited for."""
    if os.path.exists(path) and not os.path.isfile(path):
        raise ValueError("it is not a regular file")
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError(str(error)) from None


def read_record(path: str | os.PathLike, kind: type[_RecordT], remedy: str) -> _RecordT:
    """Reads a JSON file as a dataclass, or as a `dict`; raises `InputError` with this remedy."""
    try:
        return record_from_json(kind, read_json(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise input_error(path, reason, remedy) from error


def read_arrays(path: str | os.PathLike, *needed: str) -> dict[str, np.ndarray]:
    """Reads arrays of an `.npz` file, which must have them; all without a name. No pickles."""
    try:
        with np.load(path, allow_pickle=False) as arrays:
            read = {name: arrays[name] for name in arrays if not needed or name in needed}
    except Exception as error:  # zipfile, zlib, NumPy and the parser of its headers have their own
        reason = f"its arrays cannot be read ({str(error).splitlines()[0]})"
        raise input_error(path, reason, "Restore the file, or write it again") from error
    if missing := set(needed) - read.keys():
        reason = f"it has no array {min(missing)!r}"
        raise input_error(path, reason, "Restore the file, or write it again")
    return read


@contextlib.contextmanager
def naming(path: str | os.PathLike) -> Iterator[None]:
    """Adds the name of a file to errors of the operating system that name none."""
    try:
        yield
    except OSError as error:
        if error.filename is None:
            error.filename = os.fspath(path)
        raise


class _Named(io.FileIO):
    """A file whose errors name it, such as those of a full disk."""

    def write(self, content) -> int | None:
        with naming(self.name):
            return super().write(content)


def open_to_write(path: str | os.PathLike, *, append: bool = False) -> BinaryIO:
    """Opens a file to write bytes; errors name it, unlike those of a file of Python."""
    return io.BufferedWriter(_Named(os.fspath(path), "a" if append else "w"))


def open_text_to_write(path: str | os.PathLike) -> TextIO:
    """Opens a file to write UTF-8 with plain line ends; errors name it."""
    return io.TextIOWrapper(open_to_write(path), encoding="utf-8", newline="\n")


def write_array(file: BinaryIO, array: np.ndarray, dtype: str | np.dtype) -> None:
    """Writes the numbers of an array as `dtype`, row by row."""
    # `ndarray.tofile` does not notice that the disk is full: it ignores that closing the file
    # failed.
    file.write(np.ascontiguousarray(array, dtype).reshape(-1).view("u1"))


def copy_file(source: str | os.PathLike, target: str | os.PathLike) -> None:
    """Copies the content of a file; errors name the copy."""
    with naming(target):
        shutil.copyfile(source, target)


@contextlib.contextmanager
def locked(path: Path, where: object, reason: str, remedy: str = "") -> Iterator[None]:
    """Holds a lock, which the system releases if this process is killed; no remedy: it waits."""
    # On file systems without locks, such as some remote ones, it only logs a warning.
    with open(path, "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            from absl import logging  # late: whoever only encodes has NumPy alone

            if not isinstance(error, BlockingIOError):
                logging.warning("%s cannot be locked: %s", path, error.strerror)
            elif remedy:
                raise input_error(where, reason, remedy) from None
            else:
                logging.info("%s: %s; this process waits", where, reason)
                fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def flush_all(path: Path) -> None:
    """Flushes a file, or a directory and everything below it."""
    for part in (*path.rglob("*"), path):
        flush_to_disk(part)


def flush_to_disk(path: Path) -> None:
    """Flushes a file, or the list of names of a directory."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        with naming(path):
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
