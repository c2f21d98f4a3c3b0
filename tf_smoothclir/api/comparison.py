"""Comparing trained runs, or runs of any system: what `smoothclir-compare` does."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, cast

from tf_smoothclir.api.given import strings, whole_number
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation import compare as comparing
from tf_smoothclir.evaluation import trec
from tf_smoothclir.evaluation.compare import SAMPLES
from tf_smoothclir.evaluation.comparison_report import Comparison, legend
from tf_smoothclir.evaluation.metrics import DEPTH
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.settings.training import COMPARED, CROSS_VALIDATION
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import PathText, local_path

if TYPE_CHECKING:
    from tf_smoothclir.api.model import Model


def compare(
    *runs: PathText | Model,
    baseline: str = "",
    split: str = "test",
    full: bool = True,
    qrels: PathText = "",
    measures: Sequence[str] = COMPARED,
    samples: int = SAMPLES,
    seed: int = 13,
) -> Comparison:
    """Compares systems with a baseline: differences, intervals, significance tests, effect sizes.

    Args:
        *runs: Two or more: trained models, run directories, directories that `smoothclir-evaluate`
            wrote, or TREC run files of any system, which need `qrels`.
        baseline: Name of the baseline, the last part of its path; by default the first run.
        split: Which queries of run directories: "test", "validation", "train" or, of trainings
            with folds, "cross-validation": all judged ones, each ranked by the model of its fold.
        full: Whether to compare full retrieval, not candidate lists, of run directories.
        qrels: TREC qrels of the runs that are files. In full retrieval, run directories too are
            judged by them, and all on the queries of `split` alone.
        measures: What to compare by: some of the default, or any of `ir_measures` by its name,
            such as ["nDCG@20", "RR"]. In full retrieval of run directories, results are named as in
            `Model.metrics`, such as "full/MRR@10".
        samples: Random sign patterns that the randomisation test draws.
        seed: Seed of the randomisation test and of the bootstrap.

    Returns:
        `rows`, one for each metric and system, with `mean`, `difference`, its 95% interval (`low`,
        `high`), `randomization_p`, `holm_p` and more; `print` shows a table, `save` writes it.

    Raises:
        InputError: A run cannot be read or was not evaluated, or runs have different judgments.
    """
    paths = [local_path(cast("PathText", getattr(run, "path", run)), "run") for run in runs]
    qrels = local_path(qrels, "qrels")
    measures = strings(measures, "measures")
    if not measures:
        raise input_error("measures", "it is empty", "Give at least one, or leave it out")
    if split not in (splits := (*SPLITS, CROSS_VALIDATION)):
        raise input_error(f"split={split!r}", "no such split", f"Give {', '.join(splits)}")
    samples, seed = whole_number(samples, "samples"), whole_number(seed, "seed", 0)
    names = comparing.system_names(paths)
    baseline = comparing.checked_baseline(names, baseline)
    are_directories = [os.path.isdir(path) for path in paths]
    if qrels and not full and all(are_directories):
        reason = "every run is a directory, which holds the judgments of its lists"
        raise input_error(f"--qrels={qrels}", reason, "Leave it out")
    for flag, is_given in (("--nofull", not full), ("--split", split != "test")):
        if is_given and not any(are_directories):
            raise input_error(flag, "every run is a file", "Leave it out")
    files = {name: _files(path, split, full, qrels) for name, path in zip(names, paths)}
    prefix = "full/" if full and any(are_directories) else ""
    measures = [name.removeprefix(prefix) for name in measures]
    cutoffs = {name: trec.cutoff(name) for name in measures}
    further = [name for name in measures if name not in COMPARED]
    shared = Path(qrels) if qrels and full else None
    systems, best_grade = comparing.read_systems(files, further, shared)
    if prefix:
        _check_depths(paths, systems, cutoffs)
    rows = comparing.compare(
        systems, baseline=baseline, metrics=measures, seed=seed, samples=samples
    )
    rows = [dataclasses.replace(row, metric=prefix + row.metric) for row in rows]
    rules = legend(
        rows, systems, baseline=baseline, best_grade=best_grade, seed=seed, samples=samples
    )
    if shared and any(are_directories):
        rules["qrels"] = f"{qrels} judges all runs, on the {split} queries of run directories"
    return Comparison(rows, baseline, tuple(systems), rules)


def _check_depths(
    paths: Sequence[str], systems: Mapping[str, RunMetrics], cutoffs: Mapping[str, int | None]
) -> None:
    """Checks that the rankings of run directories were made for such cutoffs."""
    name, deepest = max(((n, c or 0) for n, c in cutoffs.items()), key=lambda pair: pair[1])
    for path, system in zip(paths, systems.values()):
        if os.path.isdir(path) and system.depth == DEPTH < deepest:
            raise input_error(
                f"--measures={name}",
                f"the rankings in {path} are {DEPTH} documents deep",
                f"Rank deeper, by smoothclir-evaluate --run_dir=RUN --measures={name} or"
                f" smoothclir-search --queries=... --top_k={deepest} --trec_run=..., and compare"
                " what it writes",
            )


def _files(path: str, split: str, full: bool, qrels: PathText) -> tuple[Path, Path]:
    """The TREC run and qrels files of a run."""
    if not os.path.isdir(path):
        if not os.path.exists(path):
            raise input_error(path, "there is no such run", "Correct the path")
        if not qrels:
            raise input_error(path, "it is not a run directory", "Give its judgments with --qrels")
        return Path(path), Path(qrels)
    directory = Path(path, split)
    if not directory.is_dir():  # else smoothclir-evaluate wrote it
        if others := [other for other in SPLITS if Path(path, other).is_dir()]:
            reason = f"it has figures of {', '.join(others)}, but none of the {split} split"
            raise input_error(path, reason, f"Give --split={others[0]}, or evaluate {split} too")
        directory = RunDirectory.load(path, verify=False).evaluation / split
    prefix = "full." if full else ""
    run = directory / f"{prefix}run.trec"
    if not run.is_file():
        raise input_error(
            path,
            f"it has no {run.name} of the {split} split",
            "Train it with --folds, such as --folds=5"
            if split == CROSS_VALIDATION
            else f"Finish the training, run smoothclir-evaluate --run_dir={path} --split={split},"
            " or give --nofull for candidate lists",
        )
    return run, directory / f"{prefix}qrels.trec"
