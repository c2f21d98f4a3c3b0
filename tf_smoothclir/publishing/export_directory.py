"""An export directory: its parts, their versions, the facts in their manifests; loading them."""

import dataclasses
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

from absl import logging

from tf_smoothclir.plugins import check_loaded
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import Folder, versions_in, write_manifest
from tf_smoothclir.utils.errors import InputError, input_error

# Role -> directory of its versions, and name for people. Parts appear in this order. A new document
# tower, search model or lexical model does no harm to clients of the old query tower; a query tower
# without its document tower finds nonsense. So it comes last: where it is, everything is.
_PARTS = {
    "document": ("document_tower", "document tower"),
    "search": ("search", "search model"),
    "lexical": ("lexical_model", "lexical model"),
    "family": ("family", "model of a plug-in"),
    "head": ("encoder_head", "head of a foreign encoder"),
    "reranker": ("reranker", "re-ranker"),
    "query": ("query_tower", "query tower"),
}
DIRECTORIES = {role: directory for role, (directory, _) in _PARTS.items()}
_KINDS = {role: kind for role, (_, kind) in _PARTS.items()}
# Those of SavedModels; the directory is also the name of the model on a server.
MODELS = {role: name for role, name in DIRECTORIES.items() if role not in ("lexical", "family")}
REMEDY_FOR_CHANGED_FILES = "Export the run again, and delete this version"
_forked_with_tensorflow = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class VersionFacts:
    """Facts that whatever belongs to a version of an export has: its parts, and indexes of it."""

    version: int
    # Digest of all that ranks: towers, lexical model, fusion, vocabularies, ε and the thresholds.
    pair_id: str
    thresholds: tuple[float, ...]
    # The set of the training run, or of an index: finds its collection again; None for files.
    data: DataSettings | None
    cut_points: CutPoints  # those of what ranks
    # Roles of the parts that rank together; the version is complete if all are there.
    parts: tuple[str, ...]
    retriever: str = "dense"  # the family that ranks, without a re-ranker
    plugins: tuple[str, ...] = ()  # modules that have it, to be imported by whoever uses it

    @classmethod
    def of(cls, folder: Folder) -> Self:
        """The facts in a folder, whose plug-ins must be loaded."""
        facts = folder.record(cls)
        check_loaded(facts.plugins)
        return facts

    def shared(self) -> dict[str, Any]:
        """The facts by their names."""
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(VersionFacts)}


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExportManifest(VersionFacts):
    """The manifest of an exported tower, lexical model or search model."""

    role: str  # "query", "document", "lexical" or "search"
    dim: int  # length of the vectors; 0 without towers
    epsilon: float  # ε of the similarity; 0 without towers
    documents: int | None = None  # size of the collection of a search model; None for another part
    # Documents that a search model returns per query; None for another part.
    depth: int | None = None

    @classmethod
    def read(cls, directory: Path, roles: Sequence[str] = tuple(DIRECTORIES)) -> Self:
        """The facts of the part in `directory`."""
        return cls.of(Folder.read(directory, *roles))

    @classmethod
    def of(cls, folder: Folder) -> Self:
        """The facts of the part in a folder."""
        manifest = super().of(folder)
        if not manifest.parts or not set(manifest.parts) <= DIRECTORIES.keys():
            raise folder.wrong(f"its entry 'parts' is {manifest.parts!r}")
        if manifest.role == "search" and None in (manifest.documents, manifest.depth):
            raise folder.wrong("it has no documents or no depth")
        return manifest

    def write(self, directory: Path) -> None:
        """Writes the manifest of the part in `directory`, of the files that it has now."""
        entries = dataclasses.asdict(self).items()
        facts = {name: value for name, value in entries if value is not None}
        write_manifest(directory, self.role, facts)


def check_pair(first: Any, second: Any) -> None:
    """Checks that two parts, or a part and an index, come from one training run."""
    if first.pair_id != second.pair_id:
        raise input_error(
            f"{first.role} {first.version} and {second.role} {second.version}",
            f"they come from different training runs (pair_id {first.pair_id[:12]} and"
            f" {second.pair_id[:12]}), so their scores are not comparable",
            "Use the same version of all parts, and build the index again",
        )


def _note_fork() -> None:
    global _forked_with_tensorflow
    eager = sys.modules.get("tensorflow.python.eager.context")
    context = eager and eager.context_safe()
    _forked_with_tensorflow |= bool(context and context._initialized)


os.register_at_fork(after_in_child=_note_fork)


class LoadedPart(NamedTuple):
    """A part in memory."""

    model: Any  # what `tf.saved_model.load` returns
    manifest: ExportManifest


def part_dir(export_dir: str | os.PathLike, role: str) -> Path:
    """The directory whose integer subdirectories are the versions of a part."""
    return Path(export_dir, DIRECTORIES[role])


def exported_versions(export_dir: str | os.PathLike, role: str) -> list[int]:
    """The versions of a part, by its role in `DIRECTORIES`, in ascending order."""
    return versions_in(part_dir(export_dir, role))


def versions_newest_first(export_dir: str | os.PathLike) -> list[int]:
    """The versions that any part has, complete or not."""
    return sorted({v for role in DIRECTORIES for v in exported_versions(export_dir, role)})[::-1]


def load_part(export_dir: str | os.PathLike, role: str, version: int | None = None) -> LoadedPart:
    """Loads an exported SavedModel, after checking its files and that its version is complete."""
    directory, manifest = checked_part(export_dir, role, version)
    return LoadedPart(load_model(directory), manifest)


def load_model(directory: Path) -> Any:
    """Loads the SavedModel of a part from the directory that `checked_part` returns."""
    import tensorflow as tf  # here, because much that reads an export needs none of it

    if _forked_with_tensorflow:  # whose threads are only in the parent: it would wait for ever
        reason = "this process was forked from one in which TensorFlow had computed"
        remedy = "Fork before the first model is loaded or trained, or start processes by 'spawn'"
        raise input_error(directory, reason, remedy)
    return tf.saved_model.load(str(directory))


def checked_part(
    export_dir: str | os.PathLike, role: str, version: int | None = None
) -> tuple[Path, ExportManifest]:
    """The directory and the manifest of a part, after the checks of `load_part`."""
    version = version if version is not None else newest_whole(export_dir, role)
    directory = part_dir(export_dir, role) / str(version)
    folder, manifest = _complete(export_dir, role, version)
    for partner in manifest.parts:
        check_pair(
            manifest, ExportManifest.read(part_dir(export_dir, partner) / str(version), [partner])
        )
    folder.check(REMEDY_FOR_CHANGED_FILES)
    return directory, manifest


def newest_whole(export_dir: str | os.PathLike, *roles: str) -> int:
    """The newest version with one of these parts of which all that ranks together is whole."""
    # So all parts move to a version together, or none does; what is wrong with later ones is
    # logged. Where none is whole, it is the newest complete one.
    wanted = {version for role in roles for version in exported_versions(export_dir, role)}
    errors: dict[int, InputError] = {}
    complete = []
    for version in sorted(wanted, reverse=True):
        role = next(
            candidate for candidate in roles if version in exported_versions(export_dir, candidate)
        )
        try:
            _, manifest = _complete(export_dir, role, version)
            complete.append(version)
            for part in (role, *manifest.parts):
                checked_part(export_dir, part, version)
        except InputError as error:
            errors[version] = error
            continue
        for later, error in errors.items():
            logging.warning("Version %d is used, not %d: %s", version, later, error)
        return version
    if complete:
        return complete[0]
    if errors:
        raise errors[max(errors)]
    kinds = " or ".join(_KINDS[role] for role in roles)
    raise _not_exported(export_dir, f"there is no {kinds}")


def latest_manifest(export_dir: str | os.PathLike, version: int | None = None) -> ExportManifest:
    """The manifest of a part without which its version cannot rank."""
    ranking = [role for role in DIRECTORIES if role not in ("head", "search")]
    latest = version if version is not None else newest_whole(export_dir, *ranking)
    for role in ranking:
        if latest in exported_versions(export_dir, role):
            return _complete(export_dir, role, latest)[1]
    raise _not_exported(export_dir, f"there is no complete version {latest}")


def _complete(
    export_dir: str | os.PathLike, role: str, version: int
) -> tuple[Folder, ExportManifest]:
    """A part of a version that has all parts that rank with it; their files are not read."""
    if version not in exported_versions(export_dir, role):
        raise _not_exported(export_dir, f"there is no {_KINDS[role]} of version {version}")
    folder = Folder.read(part_dir(export_dir, role) / str(version), role)
    manifest = ExportManifest.of(folder)
    missing = [
        partner
        for partner in manifest.parts
        if version not in exported_versions(export_dir, partner)
    ]
    if missing:
        names = " and no ".join(DIRECTORIES[partner] for partner in missing)
        reason = f"there is no complete version {version} of the {_KINDS[role]} (it has no {names})"
        raise _not_exported(export_dir, reason)
    return folder, manifest


def _not_exported(export_dir: str | os.PathLike, reason: str) -> InputError:
    if not Path(export_dir).is_dir():
        reason = "there is no such directory"
    return input_error(
        f"--export_dir={export_dir}", reason, "Write all parts with smoothclir-export"
    )
