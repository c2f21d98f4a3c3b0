"""An export directory: its parts, their versions, and loading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.manifest import ExportManifest, check_files, check_pair
from tf_smoothclir.training.run_directory import check_has_towers
from tf_smoothclir.utils.errors import input_error

# Role -> directory of its versions, which is also the name of the model on a server. Parts appear
# in this order. A new document tower or search model does no harm to clients of the old query
# tower; a query tower without its document tower finds nonsense. So the query tower comes last:
# where it is, everything is.
DIRECTORIES = {"document": "document_tower", "search": "search", "query": "query_tower"}
REMEDY_FOR_CHANGED_FILES = "Export the run again, and delete this version"


class LoadedPart(NamedTuple):
    """A part in memory.

    Attributes:
        model: What `tf.saved_model.load` returns.
        manifest: The manifest of the part.
    """

    model: Any
    manifest: ExportManifest


class LoadedTower(NamedTuple):
    """A tower in memory.

    Attributes:
        encode: Takes `text=`, `[batch]` string; returns a dictionary with `vector`, `[batch, dim]`.
        manifest: The manifest of the tower.
    """

    encode: Any
    manifest: ExportManifest


def part_dir(export_dir: str | os.PathLike, role: str) -> Path:
    """Returns the directory whose integer subdirectories are the versions of a part."""
    return Path(export_dir, DIRECTORIES[role])


def exported_versions(export_dir: str | os.PathLike, role: str) -> list[int]:
    """Returns the versions of a part ("query", "document" or "search"), in ascending order."""
    directory = part_dir(export_dir, role)
    if not directory.is_dir():
        return []
    names = [path.name for path in directory.iterdir()]
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def load_tower(export_dir: str | os.PathLike, role: str, version: int | None = None) -> LoadedTower:
    """Loads an exported tower, after checking its files and that the other tower is there.

    Args:
        export_dir: Where `publish_version` wrote.
        role: "query" or "document".
        version: None for the latest that has both towers.

    Raises:
        InputError: There is no such version, a file is not the one that was written, or the towers
            of the version come from different training runs.
    """
    model, manifest = load_part(export_dir, role, version)
    encode = model.signatures["serving_default"]
    encode.keep_alive = model  # a signature alone does not keep its variables
    return LoadedTower(encode, manifest)


def load_part(export_dir: str | os.PathLike, role: str, version: int | None = None) -> LoadedPart:
    """Loads an exported part, after checking its files and that both towers are there.

    Args:
        export_dir: Where `publish_version` wrote.
        role: "query", "document" or "search".
        version: None for the latest that has both towers.

    Raises:
        InputError: As for `load_tower`.
    """
    version = _checked_version(export_dir, role, version)
    directory = part_dir(export_dir, role) / str(version)
    manifest = ExportManifest.read(directory, [role])
    for other in ROLES:
        check_pair(
            manifest, ExportManifest.read(part_dir(export_dir, other) / str(version), [other])
        )
    check_files(directory, manifest, REMEDY_FOR_CHANGED_FILES)
    return LoadedPart(tf.saved_model.load(str(directory)), manifest)


def _checked_version(export_dir: str | os.PathLike, role: str, version: int | None) -> int:
    there = {name: set(exported_versions(export_dir, name)) for name in {role, *ROLES}}
    complete = set.intersection(*there.values())
    if version in complete or (version is None and complete):
        return max(complete) if version is None else version
    if not any(there.values()):
        check_has_towers(export_dir, "--export_dir")
    kind = DIRECTORIES[role].replace("_", " ") + ("" if role in ROLES else " model")
    reason = f"there is no {kind}" + ("" if version is None else f" of version {version}")
    if version in there[role] or (version is None and there[role]):
        number = max(there[role]) if version is None else version
        missing = " or ".join(DIRECTORIES[name] for name in there if number not in there[name])
        reason = f"version {number} of the {kind} is incomplete: there is no {missing}/{number}"
    raise input_error(
        f"--export_dir={export_dir}", reason, "Write all parts with smoothclir-export"
    )
