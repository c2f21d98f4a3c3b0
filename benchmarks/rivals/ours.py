"""Runs of this package beside the rivals: trained here, or given by their directories."""

from __future__ import annotations

import functools
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.rivals.measured import Measured, latency_of
from benchmarks.rivals.rival import DEPTH
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.utils.errors import InputError, input_error

_PACKAGES = ("tensorflow", "numpy", "scipy")


def train_preset(preset: str, data: DataSettings, run_dir: Path) -> float:
    """Trains a preset on a set, or continues; a finished run is left as it is.

    Returns:
        CPU seconds of this process so far; 0 if the run was finished.
    """
    from tf_smoothclir.training.run_directory import RunDirectory
    from tf_smoothclir.training.train import train  # slow import

    finished = RunDirectory(run_dir).finished
    settings = changed(preset_settings(preset), data.values())
    train(settings, run_dir)
    return 0.0 if finished else time.process_time()


def checked_run(run_dir: Path, fingerprint: str) -> Path:
    """A run directory after a check that it is finished and was trained on the set."""
    from tf_smoothclir.training.run_config import RunConfig
    from tf_smoothclir.training.run_directory import RunDirectory

    run = RunDirectory.load(run_dir)
    if not run.finished:
        raise run.incomplete("is not finished")
    if RunConfig.read(run.config).data.fingerprint != fingerprint:
        remedy = "Give a run of this set, or give no --run_dir: runs are then trained here"
        raise input_error(f"--run_dir={run_dir}", "the run was trained on another set", remedy)
    return run.path


def components_of(run_dir: Path) -> list[str]:
    """The retrievers that a finished run is made of; none where it is one alone."""
    return list(read_json(run_dir / "metrics.json").get("components", {}))


def measured_run(
    title: str, run_dir: Path, component: str, key: str, queries: list[str], export_dir: Path
) -> Measured:
    """What a finished run says of itself, and times its queries."""
    from benchmarks.common import versions_of
    from tf_smoothclir.training.run_directory import RunDirectory

    run = RunDirectory.load(run_dir)
    content, evaluation = read_json(run.metrics), run.evaluation.resolve()
    part = content["components"][component] if component else content
    folder = evaluation / "components" / component if component else evaluation
    validation = part["validation"]
    return Measured(
        title=title,
        key=key,
        evaluation=os.fspath(folder / "test"),
        ours=True,
        quality=(validation["NDCG@5"] + validation["full/MRR@10"]) / 2,
        seconds=_seconds(content, component),
        tuned_seconds=0.0,
        setting="",
        tried={},
        latency=latency_of(_search(run, export_dir, component), queries),
        megabytes=content["training"]["peak_rss_mb"],
        load=os.getloadavg()[0],
        packages=versions_of(_PACKAGES),
        texts_per_second=_indexed_per_second(export_dir, component),
    )


def _indexed_per_second(export_dir: Path, component: str) -> float:
    """Indexes the documents of the run, on the core on which queries were timed."""
    from benchmarks.common import halves_of_export
    from tf_smoothclir.data.sources.opening import source_of
    from tf_smoothclir.index.builder import build_index

    halves, manifest = halves_of_export(export_dir, retriever=component)
    with tempfile.TemporaryDirectory() as directory:
        begin = time.perf_counter()
        index = build_index(Path(directory, "index"), source_of(manifest.data), halves, manifest)
        return index.documents / (time.perf_counter() - begin)


def _seconds(content: dict, component: str) -> float:
    """How long a run, or one of its components, was learned."""
    whole = content["training"]["seconds"]
    if not component:
        return whole
    lexical = content["lexical"]["seconds"]
    return lexical if component == "lexical" else whole - lexical - content["hybrid"]["seconds"]


def _search(run, export_dir: Path, component: str) -> Callable[[str], object]:
    """What `smoothclir-search` answers a query with, after an export and an index."""
    from tf_smoothclir.publishing.export import export_run
    from tf_smoothclir.search.opening import AUTO, open_search

    opened = functools.partial(
        open_search, export_dir, "", lambda data: data, retriever=component or AUTO
    )
    try:
        found = opened()
    except InputError:
        export_run(run, export_dir, search_model=False)
        found = opened()
    return functools.partial(_answer, found)


def _answer(found, query: str):
    return found.search([query], DEPTH)
