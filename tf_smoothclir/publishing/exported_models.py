"""Published models of a version, by family: of an export, or of a run in memory."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.publishing.export_directory import (
    ExportManifest,
    check_pair,
    checked_part,
    exported_versions,
    latest_manifest,
    part_dir,
)
from tf_smoothclir.storage.folder import digest_as_saved
from tf_smoothclir.training.run_directory import TRAINED_QUERIES
from tf_smoothclir.utils.errors import input_error

ROLE = "family"


class ExportedModels(Mapping[str, Any]):
    """The published models of one version by family, loaded when they are first asked for."""

    # `manifest` is of one of its parts, or of the index that the models search; `export_dir` is ""
    # for a run in memory. With `for_search`, models only read queries; else they encode and score
    # texts too.

    def __init__(
        self,
        manifest: Any,
        export_dir: str | os.PathLike = "",
        models: Mapping[str, Any] | None = None,
        for_search: bool = False,
        trained_queries: Path | None = None,
    ):
        self.manifest, self.export_dir, self.for_search = manifest, export_dir, for_search
        self._models = dict(models or {})
        if trained_queries is None:  # beside the first part that ranks
            path = part_dir(export_dir, manifest.parts[0]) / str(manifest.version)
            trained_queries = path / TRAINED_QUERIES
        self.trained_queries = trained_queries

    @property
    def retriever(self) -> str:
        """Name of the retriever, such as "hybrid"; without a re-ranker."""
        return self.manifest.retriever

    def __iter__(self) -> Iterator[str]:
        reranked = ("reranked",) if "reranker" in self.manifest.parts else ()
        return iter(with_parts(self.retriever, *reranked))

    def __len__(self) -> int:
        return len(tuple(iter(self)))

    def __getitem__(self, name: str) -> Any:
        if name not in self._models:
            if name not in tuple(self):
                raise KeyError(name)
            self._models[name] = family(name).exported(self)
        return self._models[name]

    def vectors(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """The smooth-normalised vectors of texts, `[texts, dim]` float32."""
        encoder = next((model for model in self.values() if hasattr(model, "vectors")), None)
        if encoder is None:
            raise input_error(
                f"encode_{'queries' if role == 'query' else 'documents'}",
                f"a {self.retriever} model has no vectors",
                "Use search or score, or train with towers, such as preset='dense' or 'best'",
            )
        return encoder.vectors(role, texts)

    def part(self, role: str) -> tuple[Path, ExportManifest]:
        """Directory and manifest of a part of the version, or of the newest one that has it."""
        version = self.manifest.version
        there = version in exported_versions(self.export_dir, role)
        directory, manifest = checked_part(self.export_dir, role, version if there else None)
        check_pair(manifest, self.manifest)
        return directory, manifest


def load_exported_models(
    export_dir: str | os.PathLike, version: int | None = None
) -> ExportedModels:
    """Loads the models of a version, after checking its files and that it is complete."""
    models = ExportedModels(latest_manifest(export_dir, version), export_dir)
    dict(models)  # loads all
    return models


class ExportedFiles:
    """A part of an export that is no SavedModel, but what `save` writes into a directory."""

    pair_id = ""

    def __init__(self, save: Callable[[Path], object]):
        self._save = save

    def save(self, path: str | os.PathLike) -> None:
        """Writes everything into a directory."""
        Path(path).mkdir(exist_ok=True)
        self._save(Path(path))

    def digest(self) -> str:
        """A digest of everything that determines the scores."""
        return digest_as_saved(self.save)
