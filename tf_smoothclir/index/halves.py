"""Halves of an index: what each family keeps of the documents, such as their vectors.

An index has a directory for each half, next to `documents/`, which they share. A half encodes them
into rows, writes the rows, and turns them into what is searched; its family opens it.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.index_kind import AUTO
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.publishing.export_directory import ExportManifest
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models


class Half(Protocol):
    """Builder of one half of an index.

    Attributes:
        name: The family that it is of; its directory in an index, and its entry in the manifest.
    """

    name: str

    def encode(self, documents: Sequence[Text]) -> Any:
        """A row for each document. Called in several threads."""

    def writer(self, directory: Path) -> contextlib.AbstractContextManager[Callable[[Any], None]]:
        """Opens a new directory for rows; writes what `encode` returned for the next documents."""

    def kept(self, half: Any, positions: np.ndarray, documents: Sequence[Text]) -> Any:
        """What `encode` would return for documents of an opened half; None if it keeps less."""

    def finish(self, directory: Path, documents: DocumentStore) -> dict:
        """Turns the rows into what is searched, and checks it; its entry in the manifest."""

    def differences(self, there: dict) -> str:
        """Difference of an entry from that of the half that this one would build, or ""."""


def export_halves(
    export_dir: str | os.PathLike, kind: str = AUTO, *, version: int | None = None
) -> tuple[list[Half], ExportManifest]:
    """The halves of an index of an export, and the manifest of one of its parts."""
    models = load_exported_models(export_dir, version)
    return halves_of(models, kind), models.manifest


def halves_of(models: ExportedModels, kind: str = AUTO) -> list[Half]:
    """A half for each family that ranks and needs one."""
    families = map(family, with_parts(models.retriever))
    halves = (one.index_half(models, kind) for one in families)
    return [half for half in halves if half is not None]
