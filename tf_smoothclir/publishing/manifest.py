"""The facts of a published part, as its manifest has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.plugins import check_loaded
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import Folder, write_manifest
from tf_smoothclir.utils.errors import input_error

EXPORTED_ROLES = (*ROLES, "lexical", "family", "head", "reranker", "search")


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
    def read(cls, directory: Path, roles: Sequence[str] = EXPORTED_ROLES) -> ExportManifest:
        """The facts of the part in `directory`."""
        return cls.of(Folder.read(directory, *roles))

    @classmethod
    def of(cls, folder: Folder) -> ExportManifest:
        """The facts of the part in a folder."""
        manifest = folder.record(cls)
        check_loaded(manifest.plugins)
        if not manifest.parts or not set(manifest.parts) <= set(EXPORTED_ROLES):
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
