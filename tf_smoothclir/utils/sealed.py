"""Directories that state what was written into them: the size and the SHA-256 of each file."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

from tf_smoothclir.utils.digests import file_digest, file_digests, files_below
from tf_smoothclir.utils.files import new_directory, read_json, write_json
from tf_smoothclir.utils.records import record_from_json

SEAL = "written.json"


@dataclasses.dataclass(frozen=True)
class FileNote:
    """Size and digest of a file when it was written.

    Attributes:
        sha256: Hex SHA-256 of its content.
    """

    bytes: int
    sha256: str

    @classmethod
    def of(cls, path: Path) -> FileNote:
        """The note of a file as it is now."""
        return cls(path.stat().st_size, file_digest(path))


@dataclasses.dataclass(frozen=True)
class _Seal:
    """The content of `SEAL`: relative path -> what the file was."""

    files: dict[str, FileNote]


@contextlib.contextmanager
def sealed_directory(path: Path) -> Iterator[Path]:
    """Yields a temporary directory as `new_directory` does, and seals what was written into it."""
    with new_directory(path) as temporary:
        yield temporary
        names = files_below(temporary)
        digests = file_digests(temporary, names)
        sizes = {name: (temporary / name).stat().st_size for name in names}
        notes = {name: FileNote(sizes[name], digests[name]) for name in names}
        write_json(temporary / SEAL, dataclasses.asdict(_Seal(notes)))


def damage_in(directory: Path) -> str:
    """Damage to a sealed directory since it was written; empty if there is none.

    Such as "document.values has 12 bytes, but 16 were written". Further files may be there.
    """
    try:
        seal = record_from_json(_Seal, read_json(directory / SEAL))
    except FileNotFoundError:
        return f"it has no {SEAL}"
    except (OSError, ValueError, RecursionError) as error:
        return f"{SEAL} cannot be read ({error})"
    return damage_to(directory, seal.files)


def damage_to(directory: Path, files: dict[str, FileNote]) -> str:
    """Damage to files of a directory since they were written; empty if there is none."""
    for name, note in files.items():
        try:
            size = (directory / name).stat().st_size
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        if size != note.bytes:
            return f"{name} has {size} bytes, but {note.bytes} were written"
    try:
        found = file_digests(directory, files)
    except OSError as error:
        return f"{error.filename} cannot be read ({error.strerror})"
    for name, note in files.items():
        if found.get(name) != note.sha256:
            return f"{name} is not the file that was written (its SHA-256 differs)"
    return ""
