"""The manifest of an index: which export and collection it belongs to, and which files hold it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.manifest import MANIFEST, read_manifest
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.digests import check_own_digest, with_own_digest
from tf_smoothclir.utils.files import write_json
from tf_smoothclir.utils.records import record_from_json

REMEDY = "Build the index again with smoothclir-index --overwrite"


@dataclasses.dataclass(frozen=True)
class Recall:
    """Recall of an index: the share of the exact ranking that it finds.

    Attributes:
        value: Share of the exact best `depth` documents that are found, on average.
        queries: How many queries it was measured with; 0 for an exact index.
    """

    value: float
    depth: int
    queries: int
    measured_by: str


@dataclasses.dataclass(frozen=True)
class DenseNote:
    """Entry of a manifest about vectors.

    Attributes:
        recall: How much of the exact ranking it finds.
    """

    dim: int
    settings: IndexSettings
    recall: Recall

    def __str__(self):
        found = self.recall
        return f"{self.settings.kind}, recall@{found.depth} {found.value:.4f} ({found.measured_by})"


@dataclasses.dataclass(frozen=True)
class LexicalNote:
    """Entry of a manifest about impacts.

    Attributes:
        impacts: How many there are: pairs of a document and a query word that it may stand for.
        feedback: Whether there are vectors for feedback.
    """

    impacts: int
    feedback: bool

    def __str__(self):
        return f"{self.impacts} impacts of query words"


@dataclasses.dataclass(frozen=True)
class IndexManifest:
    """The manifest of an index.

    Attributes:
        version: Version of the export that it belongs to.
        pair_id: The `pair_id` of this export.
        data: Finds the collection again if it is a retrieval set; None for files of documents.
        content: The directory next to the manifest that holds `documents/` and the halves.
        digests: Relative path -> hex SHA-256 of each file.
        cut_points: Those that predict grades where all halves rank; None for one half of a hybrid.
        vectors: About the dense half; None if there is none.
        impacts: About the lexical half; None if there is none.
        role: "index".
    """

    version: int
    pair_id: str
    thresholds: tuple[float, ...]
    fingerprint: str
    collection_name: str
    data: DataSettings | None
    documents: int
    content: str
    digests: dict[str, str]
    cut_points: CutPoints | None
    parts: tuple[str, ...]
    vectors: DenseNote | None = None
    impacts: LexicalNote | None = None
    role: ClassVar[str] = "index"

    @classmethod
    def read(cls, directory: Path) -> IndexManifest:
        """Reads the manifest of the index in `directory`."""
        return read_manifest(directory, ["index"], cls._parsed)

    @classmethod
    def _parsed(cls, entries: dict) -> IndexManifest:
        manifest = record_from_json(cls, entries)
        check_own_digest(entries)
        return manifest

    def write(self, directory: Path) -> None:
        """Writes the manifest of the index in `directory`."""
        entries = {"role": self.role, **dataclasses.asdict(self)}
        write_json(directory / MANIFEST, with_own_digest(entries))

    @property
    def halves(self) -> tuple[str, ...]:
        """The names of the halves that the index has."""
        return tuple(name for name in ("vectors", "impacts") if getattr(self, name) is not None)

    def cut_points_of(self, *ranking: str) -> CutPoints | None:
        """The cut points of scores by some halves; None where none are known.

        Vectors alone have the thresholds of the loss where nothing better is known.
        """
        if self.cut_points is not None and set(ranking) == set(self.halves):
            return self.cut_points
        by_vectors = CutPoints(self.thresholds, (), self.thresholds)
        return by_vectors if ranking == ("vectors",) else None

    def __str__(self):
        halves = (str(getattr(self, name)) for name in self.halves)
        return "; ".join([f"{self.documents} documents", *halves])


def check_is_index(directory: Path) -> None:
    """Checks that a directory has the manifest of an index, whatever else it says."""
    read_manifest(directory, ["index"], dict)
