"""An export directory: its parts, their versions, and loading them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from tf_smoothclir.publishing.manifest import ExportManifest, check_pair
from tf_smoothclir.storage.folder import Folder
from tf_smoothclir.utils.errors import InputError, input_error

# Role -> directory of its versions. Parts appear in this order. A new document tower, search model
# or lexical model does no harm to clients of the old query tower; a query tower without its
# document tower finds nonsense. So the query tower comes last: where it is, everything is.
DIRECTORIES = {
    "document": "document_tower",
    "search": "search",
    "lexical": "lexical_model",
    "reranker": "reranker",
    "query": "query_tower",
}
# Those of SavedModels; the directory is also the name of the model on a server.
MODELS = {role: name for role, name in DIRECTORIES.items() if role != "lexical"}
REMEDY_FOR_CHANGED_FILES = "Export the run again, and delete this version"
_KINDS = {
    "query": "query tower",
    "document": "document tower",
    "lexical": "lexical model",
    "reranker": "re-ranker",
    "search": "search model",
}


class LoadedPart(NamedTuple):
    """A part in memory.

    Attributes:
        model: What `tf.saved_model.load` returns.
    """

    model: Any
    manifest: ExportManifest


class LoadedTower(NamedTuple):
    """A tower in memory.

    Attributes:
        encode: Takes `text=`, `[batch]` string; returns a dictionary with `vector`, `[batch, dim]`.
    """

    encode: Any
    manifest: ExportManifest


def part_dir(export_dir: str | os.PathLike, role: str) -> Path:
    """The directory whose integer subdirectories are the versions of a part."""
    return Path(export_dir, DIRECTORIES[role])


def exported_versions(export_dir: str | os.PathLike, role: str) -> list[int]:
    """The versions of a part, by its role in `DIRECTORIES`, in ascending order."""
    directory = part_dir(export_dir, role)
    if not directory.is_dir():
        return []
    names = [path.name for path in directory.iterdir()]
    return sorted(int(name) for name in names if name.isascii() and name.isdigit())


def load_tower(export_dir: str | os.PathLike, role: str, version: int | None = None) -> LoadedTower:
    """Loads an exported tower, after checking its files and that its version is complete."""
    model, manifest = load_part(export_dir, role, version)
    encode = model.signatures["serving_default"]
    encode.keep_alive = model  # a signature alone does not keep its variables
    return LoadedTower(encode, manifest)


def load_part(export_dir: str | os.PathLike, role: str, version: int | None = None) -> LoadedPart:
    """Loads an exported SavedModel, after checking its files and that its version is complete."""
    directory, manifest = checked_part(export_dir, role, version)
    return LoadedPart(load_model(directory), manifest)


def load_model(directory: Path) -> Any:
    """Loads the SavedModel of a part from the directory that `checked_part` returns."""
    import tensorflow as tf  # here, because much that reads an export needs none of it

    return tf.saved_model.load(str(directory))


def checked_part(
    export_dir: str | os.PathLike, role: str, version: int | None = None
) -> tuple[Path, ExportManifest]:
    """The directory and the manifest of a part, after the checks of `load_part`."""
    version = _checked_version(export_dir, role, version)
    directory = part_dir(export_dir, role) / str(version)
    folder = Folder.read(directory, role)
    manifest = ExportManifest.of(folder)
    for other in manifest.parts:
        check_pair(
            manifest, ExportManifest.read(part_dir(export_dir, other) / str(version), [other])
        )
    folder.check(REMEDY_FOR_CHANGED_FILES)
    return directory, manifest


def latest_manifest(export_dir: str | os.PathLike, version: int | None = None) -> ExportManifest:
    """The manifest of a part without which its version cannot rank."""
    there = {role: exported_versions(export_dir, role) for role in DIRECTORIES if role != "search"}
    wanted = sorted(set().union(*there.values()), reverse=True) if version is None else [version]
    for number in wanted:
        found = [role for role, versions in there.items() if number in versions]
        if found and not _missing_parts(export_dir, found[0], number):
            return ExportManifest.read(part_dir(export_dir, found[0]) / str(number), found[:1])
    reason = "there is no complete version" + ("" if version is None else f" {version}")
    raise _not_exported(export_dir, reason)


def _checked_version(export_dir: str | os.PathLike, role: str, version: int | None) -> int:
    """A version that has the part and all parts that rank with it."""
    there = exported_versions(export_dir, role)
    wanted = there[::-1] if version is None else [number for number in there if number == version]
    for number in wanted:
        if not _missing_parts(export_dir, role, number):
            return number
    reason = f"there is no {_KINDS[role]}" + ("" if version is None else f" of version {version}")
    if wanted:
        missing = " or ".join(DIRECTORIES[r] for r in _missing_parts(export_dir, role, wanted[0]))
        reason = (
            f"version {wanted[0]} of the {_KINDS[role]} is incomplete: there is no"
            f" {missing}/{wanted[0]}"
        )
    raise _not_exported(export_dir, reason)


def _missing_parts(export_dir: str | os.PathLike, role: str, version: int) -> list[str]:
    """The roles that a version lacks, by the manifest of a part that it has."""
    parts = ExportManifest.read(part_dir(export_dir, role) / str(version), [role]).parts
    return [other for other in parts if version not in exported_versions(export_dir, other)]


def _not_exported(export_dir: str | os.PathLike, reason: str) -> InputError:
    if not Path(export_dir).is_dir():
        reason = "there is no such directory"
    return input_error(
        f"--export_dir={export_dir}", reason, "Write all parts with smoothclir-export"
    )
