"""Version directories of exported towers: the complete ones, and their manifests."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tf_smoothclir.utils.digests import check_own_digest
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
        raise input_error(
            export_dir,
            f"there is no complete {role} tower{wanted}",
            "Give the directory that smoothclir-export wrote",
        )
    return export_dir / f"{role}_tower" / str(max(found))


def _versions(directory: Path) -> set[int]:
    names = os.listdir(directory) if directory.is_dir() else []
    return {int(name) for name in names if name.isascii() and name.isdigit()}


def read_manifest(path: Path, role: str) -> dict:
    """Version, pair id and files of a tower, after checking the digest of its manifest."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        if found["role"] == role and isinstance(found["files"], dict):
            check_own_digest(found)
            return {name: found[name] for name in ("version", "pair_id", "files")}
        reason = f"its role is {found['role']!r}"
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
    raise input_error(
        path, f"this is not the manifest of a {role} tower ({reason})", "Export again"
    )
