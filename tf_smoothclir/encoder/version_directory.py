"""Version directories of exported towers: the complete ones."""

from __future__ import annotations

import os
from pathlib import Path

from tf_smoothclir.utils.errors import input_error

ROLES = ("query", "document")


def version_directory(export_dir: Path, role: str, version: int | None) -> Path:
    """The directory of a complete version of a tower, the latest without `version`."""
    if role not in ROLES:
        raise input_error("role", f"it is {role!r}", "Give 'query' or 'document'")
    found = _versions(export_dir / f"{role}_tower")
    others = _versions(export_dir / "query_tower")
    if others:  # published last: where it is, everything is
        found &= others
    if version is not None:
        found &= {version}
    if not found:
        wanted = "" if version is None else f" of version {version}"
        reason = f"there is no complete {role} tower{wanted}"
        raise input_error(export_dir, reason, "Give the directory that smoothclir-export wrote")
    return export_dir / f"{role}_tower" / str(max(found))


def _versions(directory: Path) -> set[int]:
    names = os.listdir(directory) if directory.is_dir() else []
    return {int(name) for name in names if name.isascii() and name.isdigit()}
