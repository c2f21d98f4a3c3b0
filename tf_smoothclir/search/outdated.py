"""Outdated indexes: those of another training run, and the command that builds them again."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from tf_smoothclir.index.manifest import IndexManifest
from tf_smoothclir.index.vector_index import IndexSettings
from tf_smoothclir.publishing.export_directory import latest_manifest
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.utils.errors import InputError, input_error


def check_current(export_dir: str | os.PathLike, index_dir: Path, manifest: IndexManifest) -> None:
    """Checks that an index is of the run whose models are the latest of an export."""
    try:
        latest = latest_manifest(export_dir)
    except InputError:
        return  # whoever loads the models says so
    if latest.pair_id == manifest.pair_id:
        return
    raise input_error(
        index_dir,
        f"the index is of version {manifest.version} of the export, and version {latest.version}"
        " comes from a different training run, so their scores are not comparable",
        f"Build the index again: {rebuilding(export_dir, index_dir, manifest, latest.data)}",
    )


def rebuilding(
    export_dir: str | os.PathLike,
    index_dir: Path,
    manifest: IndexManifest,
    trained_on: DataSettings,
) -> str:
    """The command that builds an index again, of the same documents."""
    command = ["smoothclir-index", f"--export_dir={os.fspath(export_dir)}"]
    if index_dir != Path(export_dir, "index"):
        command.append(f"--index_dir={index_dir}")
    if manifest.data is None:
        command.append(f"--collection={manifest.collection_name}")
    else:
        others = trained_on.values()
        command += [
            f"--{name}={value_text(value)}"
            for name, value in manifest.data.values().items()
            if value != others[name] and name != "cache_dir"
        ]
    if manifest.vectors is not None:
        there = manifest.vectors.settings
        if there.kind != IndexSettings().resolved(manifest.documents).kind:
            command.append(f"--index_type={there.kind}")
    return shlex.join([*command, "--overwrite"])
