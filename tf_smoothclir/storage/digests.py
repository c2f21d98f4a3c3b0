"""Digests of files: of one, and of several together."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

_BYTES_PER_READ = 4 << 20


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


def state_of_files(path: Path) -> str:
    """Digest of the names, sizes and times of a file, or of all below a directory; "" without any.

    Whoever knows it need not read them to see that nothing changed.
    """
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


def files_below(directory: Path) -> list[str]:
    """The relative paths of all files in a directory, at any depth, sorted."""
    there = (path for path in directory.rglob("*") if path.is_file())
    return sorted(path.relative_to(directory).as_posix() for path in there)


def _add_file(digest, path: str | os.PathLike) -> None:
    with open(path, "rb") as file:
        while piece := file.read(_BYTES_PER_READ):
            digest.update(piece)
