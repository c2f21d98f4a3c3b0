"""Models of a version of an export, loaded from the export directory alone."""

from __future__ import annotations

import dataclasses
import os
from typing import TYPE_CHECKING

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing.export_directory import LoadedTower, latest_manifest, load_tower
from tf_smoothclir.publishing.exported_lexical import LexicalParts, load_lexical
from tf_smoothclir.publishing.manifest import ExportManifest

if TYPE_CHECKING:  # importing it takes seconds
    from tf_smoothclir.publishing.exported_reranker import SecondStage


@dataclasses.dataclass(frozen=True)
class ExportedModels:
    """The models of one version."""

    # Of one of its parts; version, `pair_id`, thresholds and data are those of all.
    manifest: ExportManifest
    towers: dict[str, LoadedTower]  # "query" and "document" -> tower; empty for a lexical run
    lexical: LexicalParts | None  # None for towers alone. Its `fusion` is that of a hybrid.
    # Orders the first ranks again; None where there is none.
    second_stage: SecondStage | None = None

    @property
    def retriever(self) -> str:
        """Name of the retriever of the run: "dense", "lexical" or "hybrid"."""
        return "dense" if self.lexical is None else self.lexical.retriever


def load_exported_models(
    export_dir: str | os.PathLike, version: int | None = None
) -> ExportedModels:
    """Loads the models of a version, after checking its files and that it is complete."""
    manifest = latest_manifest(export_dir, version)
    number = manifest.version
    towers = {
        role: load_tower(export_dir, role, number) for role in ROLES if role in manifest.parts
    }
    lexical = None
    if "lexical" in manifest.parts:
        lexical, _ = load_lexical(export_dir, number)
    second_stage = None
    if "reranker" in manifest.parts:
        from tf_smoothclir.publishing.exported_reranker import load_second_stage

        second_stage, _ = load_second_stage(export_dir, number)
    return ExportedModels(manifest, towers, lexical, second_stage)
