"""The manifest of an index: which export and collection it belongs to, and which files hold it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.plugins import check_loaded
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import Folder

INDEX = "index"  # the kind of its folder
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
        passages: How many there are; 0 where each document is one.
    """

    impacts: int
    feedback: bool
    passages: int = 0

    def __str__(self):
        return f"{self.impacts} impacts of query words"


@dataclasses.dataclass(frozen=True)
class IndexManifest:
    """The facts of an index.

    Attributes:
        version: Version of the export that it belongs to.
        pair_id: The `pair_id` of this export.
        data: Finds the collection again if it is a retrieval set; None for files of documents.
        cut_points: Those that predict grades where all halves rank; None for one half of a hybrid.
        retriever: The family that ranks it, without a re-ranker.
        plugins: Modules that have it.
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
    cut_points: CutPoints | None
    parts: tuple[str, ...]
    retriever: str = "dense"
    plugins: tuple[str, ...] = ()
    vectors: DenseNote | None = None
    impacts: LexicalNote | None = None
    role: ClassVar[str] = INDEX

    @classmethod
    def read(cls, directory: Path) -> IndexManifest:
        """The facts of the index in `directory`."""
        return cls.of(Folder.read(directory, INDEX))

    @classmethod
    def of(cls, folder: Folder) -> IndexManifest:
        """The facts of the index in a folder."""
        manifest = folder.record(cls)
        check_loaded(manifest.plugins)
        return manifest

    def facts(self) -> dict:
        """The facts as the folder's manifest has them."""
        return dataclasses.asdict(self)

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
