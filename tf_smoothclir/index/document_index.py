"""A searchable collection on disk: documents and the halves that rank them."""

import dataclasses
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from tf_smoothclir.index.documents import DOCUMENTS, DocumentStore
from tf_smoothclir.index.metadata import METADATA, Metadata
from tf_smoothclir.plugins import family
from tf_smoothclir.protocols.text_search import CutPoints, SearchHit
from tf_smoothclir.publishing.export_directory import VersionFacts
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.folder import Folder, opened, state_of_files
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.paths import local_path

INDEX = "index"  # the kind of its folder
REMEDY = "Build the index again with smoothclir-index --overwrite"


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexManifest(VersionFacts):
    """The facts of an index."""

    fingerprint: str
    collection_name: str
    documents: int
    halves: dict[str, dict]  # family -> what it says of its half; `summary` is for people
    state: str = ""  # `state_of_files` of the set; "" where it has no files
    role: ClassVar[str] = INDEX

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The facts of the index in `directory`."""
        return cls.of(Folder.read(directory, INDEX))

    def __str__(self):
        halves = (half["summary"] for half in self.halves.values())
        return "; ".join([f"{self.documents} documents", *halves])


def state_of_data(data: DataSettings | None) -> str:
    """`state_of_files` of a set; "" for one that is not of one's own files."""
    path = Path(local_path(data.data_dir)) if data is not None and data.data_dir else None
    return state_of_files(path) if path is not None and path.exists() else ""


class DocumentIndex:
    """Index written by `build_index`, opened.

    Attributes:
        documents: The documents; all halves count them in the same order.
        metadata: Their other columns.
    """

    def __init__(self, directory: str | os.PathLike, filter: str = ""):
        """Opens an index; only documents for which `filter` holds can be found."""
        self._filter = filter
        opened(Path(directory), INDEX, REMEDY, self._open)

    @classmethod
    def of_files(cls, content: Path, manifest: IndexManifest) -> Self:
        """Opens the files of an index that this process has just written."""
        index = cls.__new__(cls)
        index._filter = ""
        index._open_files(content, manifest)
        return index

    def _open(self, folder: Folder) -> None:
        try:
            self._open_files(folder.path, IndexManifest.of(folder))
        except InputError:
            raise
        except (KeyError, ValueError, FileNotFoundError) as error:  # of an earlier format
            raise folder.wrong(f"its files cannot be opened ({error})") from None

    def _open_files(self, content: Path, manifest: IndexManifest) -> None:
        self.manifest, self._opening = manifest, threading.Lock()
        self.documents = DocumentStore(content / DOCUMENTS)
        ids = self.documents.fields["id"].strings
        self.metadata = Metadata(content / DOCUMENTS / METADATA, ids)
        self.mask()  # a wrong filter is an error at once
        self._halves = {
            name: family(name).open_half(content / name, entry, self.documents.hashes)
            for name, entry in manifest.halves.items()
        }

    def half(self, name: str) -> Any:
        """What a family searches by, as its `open_half` returns it; None if there is none."""
        with self._opening:  # several threads may ask first
            if callable(self._halves.get(name)):  # takes memory once it is asked for
                self._halves[name] = self._halves[name]()
            return self._halves.get(name)

    def mask(self, filter: str = "") -> np.ndarray | None:
        """Documents that may be found, `[documents]` bool; None for all."""
        always, asked = (self.metadata.mask(one) for one in (self._filter, filter))
        return asked if always is None else always if asked is None else always & asked

    def __len__(self) -> int:
        return len(self.documents)

    def hits(
        self,
        positions: np.ndarray,
        scores: np.ndarray,
        cut_points: CutPoints | None,
        known_words: int = 1,
    ) -> list[SearchHit]:
        """Documents at ranked positions, with their scores, as hits; a score of 0 is none."""
        positions, scores = positions[scores != 0], scores[scores != 0]
        grades: Sequence = [None] * len(scores)
        if cut_points is not None:
            grades = cut_points.of_hits(scores, known_words).tolist()
        ranked = zip(positions, scores, grades, self.metadata.rows(positions))
        shown = [self.documents.fields[name] for name in ("id", "title", "text")]
        return [
            SearchHit(rank, float(score), grade, *(field[at] for field in shown), metadata=metadata)
            for rank, (at, score, grade, metadata) in enumerate(ranked, start=1)
        ]
