"""Manifests: the facts of a published part, and the SHA-256 of each of its files."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.digests import (
    check_own_digest,
    compare_digests,
    file_digests,
    files_below,
    with_own_digest,
)
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import read_json, write_json
from tf_smoothclir.utils.records import record_from_json

MANIFEST = "manifest.json"
EXPORTED_ROLES = (*ROLES, "lexical", "reranker", "search")
RecordT = TypeVar("RecordT")


class Manifest(Protocol):
    """Base of the manifests of towers, search models and indexes.

    Attributes:
        role: "query", "document", "lexical", "search" or "index".
        pair_id: Digest of all that ranks: towers, lexical model, fusion, vocabularies, ε and the
            thresholds.
        digests: Relative path -> hex SHA-256 of each file.
    """

    role: str
    version: int
    pair_id: str
    thresholds: tuple[float, ...]
    digests: dict[str, str]


@dataclasses.dataclass(frozen=True)
class TableQuality:
    """Quality of narrow tables of word vectors, on the validation queries of the run.

    Attributes:
        type: "int8".
        largest_distance: Between the vectors of a text by exact and by narrow tables.
    """

    type: str
    largest_distance: float
    exact: dict[str, float]
    narrow: dict[str, float]


@dataclasses.dataclass(frozen=True)
class VectorQuality:
    """Quality of a narrow form of the vectors of a search model.

    Attributes:
        type: "int8".
        recall: Share of the exact best documents that are found, on average.
        queries: Number of queries that it was measured with; of the set of the training run.
    """

    type: str
    recall: float
    depth: int
    queries: int


@dataclasses.dataclass(frozen=True)
class ExportManifest:
    """The manifest of an exported tower, lexical model or search model.

    Attributes:
        role: "query", "document", "lexical" or "search".
        pair_id: As in `Manifest`.
        dim: Length of the vectors; 0 without towers.
        epsilon: ε of the similarity; 0 without towers.
        data: The retrieval set of the training run; finds its collection again.
        parts: Roles of the parts that rank together; the version is complete if all are there.
        tables: What the narrow tables of the towers cost; None for exact ones.
        vectors: What the narrow vectors of the search model cost; None for exact ones.
        documents: Size of the collection of a search model; None for another part.
        depth: Documents that a search model returns per query; None for another part.
        digests: Relative path -> hex SHA-256 of each file.
    """

    role: str
    version: int
    pair_id: str
    dim: int
    epsilon: float
    thresholds: tuple[float, ...]
    data: DataSettings
    cut_points: CutPoints
    parts: tuple[str, ...]
    tables: TableQuality | None = None
    vectors: VectorQuality | None = None
    documents: int | None = None
    depth: int | None = None
    digests: dict[str, str] = dataclasses.field(default_factory=dict)

    @classmethod
    def read(cls, directory: Path, roles: Sequence[str] = EXPORTED_ROLES) -> ExportManifest:
        """Reads the manifest of a part."""
        return read_manifest(directory, roles, cls._parsed)

    @classmethod
    def _parsed(cls, entries: dict) -> ExportManifest:
        sizes = {}
        if entries["role"] == "search":
            sizes = {name: entry(entries, name, int) for name in ("documents", "depth")}
        manifest = cls(
            **shared_entries(entries),
            role=entries["role"],
            epsilon=entry(entries, "epsilon", (int, float)),
            data=DataSettings(**entry(entries, "data", dict)),
            cut_points=record_from_json(CutPoints, entry(entries, "cut_points", dict)),
            tables=_record(TableQuality, entries, "tables"),
            vectors=_record(VectorQuality, entries, "vectors"),
            parts=_parts(entries),
            **sizes,
        )
        check_own_digest(entries)
        return manifest

    def write(self, directory: Path) -> None:
        """Writes the manifest of the part in `directory`."""
        entries = dataclasses.asdict(self)
        digests = entries.pop("digests")
        known = {name: value for name, value in entries.items() if value is not None}
        write_json(directory / MANIFEST, with_own_digest({**known, "files": digests}))


def _record(kind: type[RecordT], entries: dict, name: str) -> RecordT | None:
    """An entry that need not be there."""
    return record_from_json(kind, entry(entries, name, dict)) if name in entries else None


def _parts(entries: dict) -> tuple[str, ...]:
    parts = entry(entries, "parts", list)
    if not parts or not set(map(str, parts)) <= set(EXPORTED_ROLES):
        raise ValueError(f"its entry 'parts' is {parts!r}")
    return tuple(parts)


ManifestT = TypeVar("ManifestT", bound=Manifest)


def read_manifest(
    directory: Path, roles: Sequence[str], parse: Callable[[dict], ManifestT]
) -> ManifestT:
    """Reads a manifest and checks its role."""
    path = directory / MANIFEST
    try:
        entries = read_json(path)
        if not isinstance(entries, dict):
            raise ValueError("it is not a JSON object")
        role = entry(entries, "role", str)
        if role not in roles:
            raise ValueError(f"its role is {role!r}")
        return parse(entries)
    except (OSError, ValueError, TypeError, RecursionError) as error:
        expected = " or ".join(map(repr, roles))
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise input_error(
            path,
            f"this is not a manifest with the role {expected} ({reason})",
            "Choose another directory; if the manifest is damaged, write the directory again",
        ) from None


def entry(entries: dict, name: str, kind: type | tuple[type, ...]) -> Any:
    """An entry of a JSON object."""
    if name not in entries:
        raise ValueError(f"it has no entry {name!r}")
    value = entries[name]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"its entry {name!r} is {value!r}")
    return value


def shared_entries(entries: dict) -> dict[str, Any]:
    """The fields that all manifests share, except the role, from a JSON object."""
    digests = entry(entries, "files", dict)
    if not all(isinstance(digest, str) for digest in digests.values()):
        raise ValueError("its entry 'files' holds something other than digests")
    return {
        "version": entry(entries, "version", int),
        "pair_id": entry(entries, "pair_id", str),
        "dim": entry(entries, "dim", int),
        "thresholds": tuple(entry(entries, "thresholds", list)),
        "digests": digests,
    }


def check_files(directory: Path, manifest: Manifest, remedy: str) -> None:
    """Checks that a directory holds exactly the files of its manifest, unchanged."""
    compare_digests(directory, digests_below(directory), manifest.digests, remedy)


def digests_below(directory: Path) -> dict[str, str]:
    """Relative path -> hex SHA-256 of the files below a directory, except its manifest."""
    return file_digests(directory, (name for name in files_below(directory) if name != MANIFEST))


def check_pair(first: Manifest, second: Manifest) -> None:
    """Checks that two parts, or a part and an index, come from one training run."""
    check_pair_id(f"{first.role} {first.version}", first.pair_id, second)


def check_pair_id(part: str, pair_id: str, manifest: Manifest) -> None:
    """Checks that a part comes from the same training run as the owner of a manifest."""
    if pair_id != manifest.pair_id:
        raise input_error(
            f"{part} and {manifest.role} {manifest.version}",
            f"they come from different training runs (pair_id {pair_id[:12]} and"
            f" {manifest.pair_id[:12]}), so their scores are not comparable",
            "Use the same version of all parts, and build the index again",
        )
