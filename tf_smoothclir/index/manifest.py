"""The manifest of an index: which export and collection it belongs to, and what it holds."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import ClassVar

from tf_smoothclir.plugins import check_loaded
from tf_smoothclir.publishing.manifest import VersionFacts
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.digests import state_of_files
from tf_smoothclir.storage.folder import Folder
from tf_smoothclir.utils.paths import local_path

INDEX = "index"  # the kind of its folder
REMEDY = "Build the index again with smoothclir-index --overwrite"


@dataclasses.dataclass(frozen=True, kw_only=True)
class IndexManifest(VersionFacts):
    """The facts of an index.

    Attributes:
        state: `state_of_files` of the set; "" where it has no files.
        halves: Family -> what it says of its half; `summary` is for people.
        role: "index".
    """

    fingerprint: str
    collection_name: str
    documents: int
    halves: dict[str, dict]
    state: str = ""
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

    def __str__(self):
        halves = (half["summary"] for half in self.halves.values())
        return "; ".join([f"{self.documents} documents", *halves])


def state_of_data(data: DataSettings | None) -> str:
    """`state_of_files` of a set; "" for one that is not of one's own files."""
    path = Path(local_path(data.data_dir)) if data is not None and data.data_dir else None
    return state_of_files(path) if path is not None and path.exists() else ""
