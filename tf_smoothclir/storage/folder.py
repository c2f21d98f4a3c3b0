"""Folders with a manifest: a kind, facts, of each file size, SHA-256 and time; digests of files."""

import contextlib
import dataclasses
import hashlib
import json
import os
import re
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from tf_smoothclir.storage.files import (
    flush_all,
    flush_to_disk,
    new_directory,
    read_json,
    scratch_directory,
    write_json,
)
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.parallel import map_in_threads
from tf_smoothclir.utils.records import record_from_json

MANIFEST = "manifest.json"
_VERSION = re.compile("0|[1-9][0-9]{0,17}")  # model servers take no number above int64
# Names of files and what gives their content, piece by piece.
Contents = Sequence[tuple[str, Callable[[], Iterable[bytes]]]]
_OpenedT = TypeVar("_OpenedT")
_RecordT = TypeVar("_RecordT")
_WRITE_AGAIN = (
    "Choose another directory; if the manifest is damaged, delete the directory and write it again"
)


@dataclasses.dataclass(frozen=True)
class FileNote:
    """Size, digest and time of a file when it was written."""

    bytes: int
    sha256: str  # hex SHA-256 of its content
    # Time of its last change that `of` gave it, in whole seconds since the epoch, which archives
    # keep too.
    modified: int

    @classmethod
    def of(cls, path: Path) -> Self:
        """The note of a file as it is now; sets its time."""
        modified = int(time.time()) - 1  # a change from now on has a later time, however coarse
        os.utime(path, (modified, modified))
        return cls(path.stat().st_size, file_digest(path), modified)


@dataclasses.dataclass(frozen=True)
class _Manifest:
    """Content of the manifest."""

    kind: str
    facts: dict
    files: dict[str, FileNote]
    # Hex SHA-256 of the other entries: of their values, not of how they are written.
    digest: str = ""

    def own_digest(self) -> str:
        """The digest that belongs to the other entries."""
        entries = dataclasses.asdict(dataclasses.replace(self, digest=""))
        return hashlib.sha256(json.dumps(entries, sort_keys=True).encode()).hexdigest()


@dataclasses.dataclass(frozen=True)
class Folder:
    """A folder as its manifest describes it."""

    path: Path
    kind: str  # of what it holds, such as "index"
    facts: dict[str, Any]  # a JSON object
    files: dict[str, FileNote]  # relative path -> what the file was when it was written

    @classmethod
    def read(cls, path: Path, *kinds: str, remedy: str = _WRITE_AGAIN) -> Self:
        """Reads and checks the manifest of a folder of one of these kinds, but not the files."""
        manifest = _read_manifest(path, kinds, remedy)
        if manifest.digest != manifest.own_digest():
            reason = "its entries are not those that its digest was made of"
            raise _not_a_manifest(path, kinds, reason, remedy)
        return cls(path, manifest.kind, manifest.facts, manifest.files)

    @classmethod
    def checked(cls, path: Path, kind: str, remedy: str) -> Self:
        """Reads a folder; raises `InputError` with this remedy if anything of it is damaged."""
        folder = cls.read(path, kind, remedy=remedy)
        folder.check(remedy)
        return folder

    def record(self, kind: type[_RecordT]) -> _RecordT:
        """The facts as a dataclass; raises `InputError` where they do not suit it."""
        try:
            return record_from_json(kind, self.facts)
        except ValueError as error:
            raise self.wrong(str(error)) from None

    def wrong(self, reason: str) -> InputError:
        """The error for facts that are not what they should be."""
        return _not_a_manifest(self.path, [self.kind], reason, _WRITE_AGAIN)

    def damage(self) -> str:
        """Damage to its files since they were written, or visible ones beside; "" for none."""
        for name in files_below(self.path):
            if name not in self.files and name != MANIFEST and not Path(name).name.startswith("."):
                return f"{name} was not written with the others"
        return damage_to(self.path, self.files)

    def check(self, remedy: str) -> None:
        """Raises `InputError` with this remedy if a file is not the one that was written."""
        if damage := self.damage():
            raise input_error(self.path, f"it is damaged: {damage}", remedy)


def check_kind(path: Path, *kinds: str) -> None:
    """Raises `InputError` unless there is a folder of one of these kinds, damaged or not."""
    _read_manifest(path, kinds, _WRITE_AGAIN)


def _read_manifest(path: Path, kinds: Sequence[str], remedy: str) -> _Manifest:
    try:
        manifest = record_from_json(_Manifest, read_json(path / MANIFEST))
    except (OSError, ValueError, RecursionError) as error:
        if isinstance(error, (FileNotFoundError, NotADirectoryError)) and not path.is_dir():
            raise input_error(path, "there is no such directory", "Check the path") from None
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise _not_a_manifest(path, kinds, reason, remedy) from None
    if manifest.kind not in kinds:
        raise _not_a_manifest(path, kinds, f"its kind is {manifest.kind!r}", remedy)
    return manifest


def _not_a_manifest(path: Path, kinds: Sequence[str], reason: str, remedy: str) -> InputError:
    expected = " or ".join(map(repr, kinds))
    reason = f"this is not a manifest of the kind {expected} ({reason})"
    return input_error(path / MANIFEST, reason, remedy)


@contextlib.contextmanager
def new_folder(
    path: Path, kind: str, *, replace: bool = False
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yields where to write its files, and facts to be filled; `replace`: in one step."""
    with new_directory(path, replace=replace) as temporary:
        facts: dict[str, Any] = {}
        yield temporary, facts
        write_manifest(temporary, kind, facts)


def write_manifest(directory: Path, kind: str, facts: Mapping[str, Any]) -> None:
    """Writes the manifest of a directory with the files that it holds now."""
    names = [name for name in files_below(directory) if name != MANIFEST]
    _write_manifest(directory, kind, facts, _notes(directory, names))


@contextlib.contextmanager
def adding(directory: Path, kind: str, path: Path) -> Iterator[Path]:
    """Yields where to write a part of a folder that grows; then renames it, and notes it."""
    # A file that replaces another one is not noted for the moment between, and the first one comes
    # after a manifest: a kill makes no file look damaged.
    with scratch_directory(directory, path.name) as scratch:
        temporary = scratch / path.name
        yield temporary
        notes = _notes(scratch, files_below(scratch))
        flush_all(temporary)
        is_new = not (directory / MANIFEST).exists()
        there = {} if is_new else Folder.read(directory, kind).files
        others = {name: note for name, note in there.items() if name not in notes}
        if is_new or others != there:
            _write_manifest(directory, kind, {}, others)
        os.replace(temporary, path)
        flush_to_disk(directory)
        _write_manifest(directory, kind, {}, {**others, **notes})


def _notes(directory: Path, names: Sequence[str]) -> dict[str, FileNote]:
    return dict(zip(names, map_in_threads(FileNote.of, (directory / name for name in names))))


def _write_manifest(
    directory: Path, kind: str, facts: Mapping[str, Any], files: dict[str, FileNote]
) -> None:
    facts = json.loads(json.dumps(facts))  # as they will be read
    manifest = _Manifest(kind, facts, files)
    manifest = dataclasses.replace(manifest, digest=manifest.own_digest())
    write_json(directory / MANIFEST, dataclasses.asdict(manifest))


def opened(path: Path, kind: str, remedy: str, open_: Callable[[Folder], _OpenedT]) -> _OpenedT:
    """What `open_` makes of a checked folder; again if the folder is replaced meanwhile."""
    while True:
        before = _inode(path)  # of the directory that all of this is about
        try:
            folder = Folder.read(path, kind)
            folder.check(remedy)
            result = open_(folder)
        except (OSError, InputError):
            if _inode(path) in (before, None):
                raise
            continue
        if _inode(path) in (before, None):
            return result


def _inode(path: Path) -> int | None:
    return path.stat().st_ino if path.exists() else None


def damage_to(directory: Path, files: Mapping[str, FileNote]) -> str:
    """Damage to files of a directory since they were written; empty if there is none."""
    touched = []
    for name, note in files.items():
        try:
            status = (directory / name).lstat()
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        if not stat.S_ISREG(status.st_mode):
            return f"{name} is not a regular file"
        if status.st_size != note.bytes:
            return f"{name} has {status.st_size} bytes, but {note.bytes} were written"
        if status.st_mtime_ns != note.modified * 10**9:
            touched.append(name)
    try:
        digests = map_in_threads(file_digest, (directory / name for name in touched))
        for name, digest in zip(touched, digests):
            if digest != files[name].sha256:
                return f"{name} is not the file that was written (its SHA-256 differs)"
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    return ""


def file_digest(path: str | os.PathLike, algorithm: str = "sha256") -> str:
    """The hex digest of a file, read in pieces."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    _add_file(digest, path)
    return digest.hexdigest()


def joint_digest(paths: Iterable[Path], others: Contents = ()) -> str:
    """Digest of the names, sizes and contents of files, in this order: hex SHA-256."""
    # `others` come first, of which the content is at hand, in pieces that are asked for twice.
    digest = hashlib.sha256()
    for name, pieces in others:
        digest.update(f"{name}\0{sum(map(len, pieces()))}\0".encode())
        for piece in pieces():
            digest.update(piece)
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        _add_file(digest, path)
    return digest.hexdigest()


def state_of_files(path: Path) -> str:
    """Digest of names, sizes and times of a file, or of all below a directory; "" without any."""
    names = [""] if path.is_file() else files_below(path)
    states = [(name, (path / name).stat()) for name in names]
    content = "".join(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\0" for name, state in states)
    return hashlib.sha256(content.encode("utf-8", "surrogateescape")).hexdigest() if names else ""


def digest_as_saved(save: Callable[[Path], object]) -> str:
    """Digest of the files that `save` writes into the new directory that it is given."""
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary, "saved")
        save(directory)
        return joint_digest(directory / name for name in files_below(directory))


def versions_in(directory: Path) -> list[int]:
    """The versions in a directory, by the names of theirs, in ascending order."""
    names = os.listdir(directory) if directory.is_dir() else []
    return sorted(int(name) for name in names if _VERSION.fullmatch(name))


def files_below(directory: Path) -> list[str]:
    """The relative paths of all files in a directory, at any depth, sorted."""
    there = (path for path in directory.rglob("*") if path.is_file())
    return sorted(path.relative_to(directory).as_posix() for path in there)


def _add_file(digest, path: str | os.PathLike) -> None:
    with open(path, "rb") as file:
        hashlib.file_digest(file, lambda: digest)
