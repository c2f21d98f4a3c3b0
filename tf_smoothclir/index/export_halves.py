"""The halves of an index that an export can make."""

from __future__ import annotations

import dataclasses
import os
from typing import NamedTuple

from tf_smoothclir.index.halves import Half
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.publishing.exported_models import ExportedModels, load_exported_models
from tf_smoothclir.publishing.manifest import ExportManifest
from tf_smoothclir.utils.errors import input_error


class ExportHalves(NamedTuple):
    """Halves and manifest that an index of an export is built with.

    Attributes:
        halves: Those of the families that rank.
        manifest: The manifest of the export: of one of its parts; without cut points and re-ranker
            where only a part of what it ranks with is wanted.
    """

    halves: list[Half]
    manifest: ExportManifest


def export_halves(
    export_dir: str | os.PathLike,
    settings: IndexSettings | None = None,
    *,
    version: int | None = None,
    retriever: str = "",
) -> ExportHalves:
    """Loads the models of an export that encode documents."""
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
    return ExportHalves(halves_of(models, settings, retriever), manifest)


def halves_of(
    models: ExportedModels, settings: IndexSettings | None = None, retriever: str = ""
) -> list[Half]:
    """A half for each family that needs one; the arguments are those of `export_halves`."""
    families = map(family, with_parts(retriever or models.retriever))
    halves = (own.index_half(models, settings) for own in families)
    return [half for half in halves if half is not None]
