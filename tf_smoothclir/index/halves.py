"""Halves of an index: what each family keeps of the documents, such as their vectors.

An index has a directory for each half, next to `documents/`, which they share. A half encodes them
into rows, writes the rows, and turns them into what is searched; its family opens it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.index_kind import AUTO
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.publishing.manifest import ExportManifest
from tf_smoothclir.utils.errors import input_error


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
        """What `encode` would return for some documents, from a half that has them already.

        Args:
            half: As its family opens it.
            positions: `[documents]` int64, where they are in it.
            documents: They themselves.

        Returns:
            None where the half does not keep enough of them.
        """

    def finish(self, directory: Path, documents: DocumentStore) -> dict:
        """Turns the rows into what is searched, and checks it; its entry in the manifest."""

    def differences(self, there: dict) -> str:
        """Difference of an entry from that of the half that this one would build, or ""."""


def export_halves(
    export_dir: str | os.PathLike,
    kind: str = AUTO,
    *,
    version: int | None = None,
    retriever: str = "",
) -> tuple[list[Half], ExportManifest]:
    """Loads the models of an export that encode documents.

    Returns:
        The halves of the families that rank, and the manifest of the export: of one of its parts;
        without cut points and re-ranker where only a part of what it ranks with is wanted.
    """
    models = load_exported_models(export_dir, version)
    manifest, retriever = models.manifest, retriever or models.retriever
    if retriever not in with_parts(models.retriever):
        raise input_error(
            f"--retriever={retriever}",
            f"the exported run ranks by --retriever={models.retriever} alone",
            "Leave the flag out, or export a run that has what it needs",
        )
    if retriever != models.retriever:  # its grades and its re-ranker are those of the whole
        parts = tuple(part for part in manifest.parts if part != "reranker")
        manifest = dataclasses.replace(manifest, cut_points=None, retriever=retriever, parts=parts)
    return halves_of(models, kind, retriever), manifest


def halves_of(models: ExportedModels, kind: str = AUTO, retriever: str = "") -> list[Half]:
    """A half for each family that needs one; the arguments are those of `export_halves`."""
    families = map(family, with_parts(retriever or models.retriever))
    halves = (own.index_half(models, kind) for own in families)
    return [half for half in halves if half is not None]
