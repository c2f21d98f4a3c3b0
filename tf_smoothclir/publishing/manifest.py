"""Manifests: what a published part is, and the hash of every file of it."""

from __future__ import annotations

from pathlib import Path

from tf_smoothclir.utils.digests import compare_digests, file_digests, files_below
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import read_json

MANIFEST = "manifest.json"
_REQUIRED = {"role": str, "version": int, "pair_id": str, "dim": int, "thresholds": list}


def read_manifest(directory: Path, role: str) -> dict:
    """Reads the manifest of a tower, a search model or an index.

    Args:
        directory: Of the part.
        role: "query", "document", "search" or "index".

    Returns:
        At least `role`, `version`, `pair_id`, `dim`, `thresholds` and `files`.

    Raises:
        InputError: It is missing, damaged, or that of something else.
    """
    path = directory / MANIFEST
    try:
        manifest = read_json(path)
    except (OSError, ValueError, RecursionError):  # not there, not UTF-8, no JSON
        manifest = None
    if not _is_whole(manifest) or manifest["role"] != role:
        raise input_error(
            path,
            f"this is no manifest of the role {role!r}",
            "Choose another directory; where the manifest is damaged, write the part anew",
        )
    return manifest


def check_files(directory: Path, manifest: dict, remedy: str) -> None:
    """Checks that the files of a directory are those of its manifest, no more and no less.

    Raises:
        InputError: One is not; the message names it.
    """
    compare_digests(directory, hash_files(directory), manifest["files"], remedy)


def check_pair(first: dict, second: dict) -> None:
    """Checks that two manifests, of towers or of an index, belong to one training run.

    Raises:
        InputError: They do not.
    """
    if first["pair_id"] != second["pair_id"]:
        raise input_error(
            " and ".join(f"{part['role']} {part['version']}" for part in (first, second)),
            f"they come from different training runs (pair_id {first['pair_id'][:12]} and"
            f" {second['pair_id'][:12]}), so their vectors do not belong together",
            "Use the same version of both towers, and build the index anew",
        )


def hash_files(directory: Path) -> dict[str, str]:
    """Returns relative path -> hex SHA-256 of the files of a directory, except its manifest."""
    return file_digests(directory, (name for name in files_below(directory) if name != MANIFEST))


def _is_whole(manifest) -> bool:
    """Whether a manifest has what all parts rely on, each of its type."""
    if not isinstance(manifest, dict):
        return False
    files = manifest.get("files")
    return (
        all(isinstance(manifest.get(key), kind) for key, kind in _REQUIRED.items())
        and isinstance(files, dict)
        and all(isinstance(digest, str) for digest in files.values())
    )
