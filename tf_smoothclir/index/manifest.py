"""The manifest of an index: which towers and collection it belongs to, and which files hold it."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.publishing.manifest import (
    MANIFEST,
    ExportManifest,
    entry,
    read_manifest,
    shared_entries,
)
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.files import write_json


@dataclasses.dataclass(frozen=True)
class Recall:
    """How much of the exact ranking an index finds.

    Attributes:
        value: Share of the exact best `depth` documents that are found, on average.
        depth: How many best documents are looked for.
        queries: How many queries it was measured with; 0 for an exact index.
        measured_by: What the queries are, in words.
    """

    value: float
    depth: int
    queries: int
    measured_by: str


@dataclasses.dataclass(frozen=True)
class IndexManifest:
    """The manifest of an index. Until the index has files, the fields after `recall` are empty.

    Attributes:
        version: Version of the export whose towers it belongs to.
        pair_id: The `pair_id` of these towers.
        dim: Length of the vectors.
        thresholds: Scores at which the predicted grade changes.
        fingerprint: Digest of the collection that was indexed.
        collection_name: Name of this collection, for messages.
        data: Finds the collection again if it is a retrieval set; None for files of documents.
        recall: How much of the exact ranking it finds.
        generation: Counts the states that the index has had, from 1.
        settings: The resolved settings of the vector index.
        documents: How many documents can be found.
        removed: How many documents are in the segments but marked as removed.
        current: Relative path of the directory that holds the state besides the segments.
        segments: Relative paths of the segments, in order.
        digests: Relative path -> hex SHA-256 of each file.
        changed: Whether documents were added or removed since the collection was indexed.
        role: "index".
    """

    version: int
    pair_id: str
    dim: int
    thresholds: tuple[float, ...]
    fingerprint: str
    collection_name: str
    data: DataSettings | None
    recall: Recall
    generation: int = 0
    settings: IndexSettings = dataclasses.field(default_factory=IndexSettings)
    documents: int = 0
    removed: int = 0
    current: str = ""
    segments: tuple[str, ...] = ()
    digests: dict[str, str] = dataclasses.field(default_factory=dict)
    changed: bool = False
    role: str = dataclasses.field(default="index", init=False)

    @classmethod
    def of_tower(cls, tower: ExportManifest, **fields) -> IndexManifest:
        """Returns the manifest of an index with the vectors of a document tower."""
        shared = {name: getattr(tower, name) for name in ("version", "pair_id", "dim")}
        return cls(**shared, thresholds=tower.thresholds, **fields)

    @classmethod
    def read(cls, directory: Path) -> IndexManifest:
        """Reads the manifest of the index in `directory`.

        Raises:
            InputError: The manifest is missing, damaged, or not that of an index.
        """
        return read_manifest(directory, ["index"], cls._parsed)

    @classmethod
    def _parsed(cls, entries: dict) -> IndexManifest:
        data = entry(entries, "data", (dict, type(None)))
        numbers = {name: entry(entries, name, int) for name in ("generation", "documents")}
        return cls(
            **shared_entries(entries),
            **numbers,
            fingerprint=entry(entries, "collection", str),
            collection_name=entry(entries, "name", str),
            data=None if data is None else DataSettings(**data),
            recall=Recall(**entry(entries, "recall", dict)),
            settings=IndexSettings(**entry(entries, "index", dict)),
            removed=entry(entries, "removed", int),
            current=entry(entries, "current", str),
            segments=tuple(entry(entries, "segments", list)),
            changed="changed" in entries and entry(entries, "changed", bool),
        )

    def write(self, directory: Path) -> None:
        """Writes the manifest of the index in `directory`."""
        entries = {
            "version": self.version,
            "pair_id": self.pair_id,
            "dim": self.dim,
            "thresholds": self.thresholds,
            "role": self.role,
            "collection": self.fingerprint,
            "name": self.collection_name,
            "data": None if self.data is None else dataclasses.asdict(self.data),
            "recall": dataclasses.asdict(self.recall),
            "generation": self.generation,
            "index": dataclasses.asdict(self.settings),
            "documents": self.documents,
            "removed": self.removed,
            "current": self.current,
            "segments": self.segments,
            "files": self.digests,
        }
        write_json(directory / MANIFEST, entries | ({"changed": True} if self.changed else {}))
