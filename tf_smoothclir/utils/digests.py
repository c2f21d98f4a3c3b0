"""Digests of files: of one, of several together, of each file below a directory."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.parallel import map_in_threads

_BYTES_PER_READ = 4 << 20
_OWN = "digest"  # the entry of a JSON object that covers the others


def file_digest(path: str | os.PathLike, algorithm: str = "sha256") -> str:
    """The hex digest of a file, read in pieces."""
    digest = hashlib.new(algorithm, usedforsecurity=False)
    _add_file(digest, path)
    return digest.hexdigest()


def joint_digest(paths: Iterable[Path]) -> str:
    """Digest of the names, sizes and contents of files, in this order: hex SHA-256."""
    digest = hashlib.sha256()
    for path in paths:
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        _add_file(digest, path)
    return digest.hexdigest()


def file_digests(directory: Path, names: Iterable[str]) -> dict[str, str]:
    """Relative path -> hex SHA-256 for the files in `names` that exist."""
    present = [name for name in names if (directory / name).is_file()]
    return dict(zip(present, map_in_threads(file_digest, (directory / name for name in present))))


def files_below(directory: Path, folders: Sequence[str] = ("",)) -> list[str]:
    """The relative paths of all files in `folders` of a directory, at any depth, sorted."""
    found = (path for folder in folders for path in (directory / folder).rglob("*"))
    return sorted(path.relative_to(directory).as_posix() for path in found if path.is_file())


def check_digests(directory: Path, written: dict[str, str], remedy: str) -> None:
    """Checks that files have the digests they were written with; others may be there too."""
    compare_digests(directory, file_digests(directory, written), written, remedy)


def compare_digests(
    directory: Path, found: dict[str, str], written: dict[str, str], remedy: str
) -> None:
    """Checks that `found` equals `written`, both relative path -> hex SHA-256."""
    for name in sorted({*found, *written}):
        if found.get(name) != written.get(name):
            raise input_error(directory / name, "the file is not the one that was written", remedy)


def _add_file(digest, path: str | os.PathLike) -> None:
    with open(path, "rb") as file:
        while piece := file.read(_BYTES_PER_READ):
            digest.update(piece)


def with_own_digest(entries: dict) -> dict:
    """A JSON object with a digest of its entries, which `check_own_digest` checks."""
    return {**entries, _OWN: _own_digest(entries)}


def check_own_digest(entries: dict) -> None:
    """Checks a JSON object from `with_own_digest`.

    The digest is of the values, not of how they are written.
    """
    if entries.get(_OWN) != _own_digest(entries):
        raise ValueError("its entries are not those that its digest was made of")


def _own_digest(entries: dict) -> str:
    others = {name: value for name, value in entries.items() if name != _OWN}
    return hashlib.sha256(json.dumps(others, sort_keys=True).encode()).hexdigest()
