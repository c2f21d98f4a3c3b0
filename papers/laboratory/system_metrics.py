"""The metrics of a trained system over its seeds, and which differences are more than chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.compare import Difference, compare, read_systems
from tf_smoothclir.evaluation.comparison_report import Comparison, legend
from tf_smoothclir.evaluation.significance import SAMPLES
from tf_smoothclir.evaluation.trec_files import RunMetrics
from tf_smoothclir.papers.laboratory.cells import CellDirectory
from tf_smoothclir.settings.training import METRICS

SPLIT = "test"
FULL_MRR = "full/MRR@10"
TEST_SEED = 13  # of the randomisation test
ALPHA = 0.05  # a difference is marked if its Holm-corrected p is below


@dataclasses.dataclass(frozen=True)
class SystemMetrics:
    """A system's metrics on the test split, for each seed that it was trained with."""

    name: str  # of the system
    cells: tuple[CellDirectory, ...]  # one for each seed
    # metric -> `[seeds]`, means over the queries; full retrieval is "full/..."
    values: dict[str, np.ndarray]
    queries: dict[str, int]  # metric -> number of queries in a mean
    epoch_seconds: np.ndarray  # `[seeds]`, training time of an epoch
    peak_mb: np.ndarray  # `[seeds]`, peak memory of the process
    part: str = ""  # as in `System`

    @property
    def thresholds(self) -> tuple[float, ...]:
        """The thresholds of all seeds, or the cut points of a loss that has those instead."""
        return self.cells[0].cell.segments

    @property
    def seeds(self) -> tuple[int, ...]:
        """One for each cell."""
        return tuple(cell.cell.settings.training.seed for cell in self.cells)

    @property
    def histories(self) -> list[list[dict]]:
        """The history of each seed: a record for each epoch."""
        return [cell.history() for cell in self.cells]

    @property
    def score_counts(self) -> np.ndarray:
        """`[K, bins]`: training pairs of all seeds, by grade and score."""
        return np.sum([cell.score_counts() for cell in self.cells], axis=0)


def read_system_metrics(
    name: str, cells: Sequence[CellDirectory], part: str = ""
) -> SystemMetrics | None:
    """The metrics of a system over its finished seeds; None if no seed is finished."""
    finished = tuple(cell for cell in cells if cell.finished)
    if not finished:
        return None
    runs = [cell.metrics(part) for cell in finished]
    first = runs[0]
    return SystemMetrics(
        name,
        finished,
        {
            metric: np.array([run.splits[SPLIT][metric] for run in runs])
            for metric in first.splits[SPLIT]
        },
        first.counts[SPLIT],
        epoch_seconds=np.array([run.seconds / max(1, run.epochs) for run in runs]),
        peak_mb=np.array([run.peak_mb for run in runs]),
        part=part,
    )


def per_query_means(
    systems: Sequence[SystemMetrics], metrics: Sequence[str] = METRICS
) -> tuple[dict[str, RunMetrics], int]:
    """Name -> metrics of each query, averaged over seeds; and the highest grade."""
    runs, best_grade = _read(systems, full=False)
    if FULL_MRR in metrics:
        for name, full in _read(systems, full=True)[0].items():
            reciprocal = full.per_query["MRR_mr"]
            beyond = reciprocal < 1 / 10.5  # below rank 10; float32 rounds 1/10
            runs[name].per_query[FULL_MRR] = np.where(beyond, 0, reciprocal)
    means = {
        system.name: _mean([runs[_key(system.name, seed)] for seed in system.seeds], metrics)
        for system in systems
    }
    return means, best_grade


def _read(systems: Sequence[SystemMetrics], *, full: bool) -> tuple[dict[str, RunMetrics], int]:
    return read_systems(
        {
            _key(system.name, seed): cell.trec_files(SPLIT, system.part, full=full)
            for system in systems
            for seed, cell in zip(system.seeds, system.cells)
        }
    )


def _key(name: str, seed: int) -> str:
    return f"{name}, seed {seed}"


def _mean(runs: Sequence[RunMetrics], metrics: Sequence[str]) -> RunMetrics:
    per_query = {
        metric: np.mean([run.per_query[metric] for run in runs], axis=0) for metric in metrics
    }
    return dataclasses.replace(runs[0], per_query=per_query)


def save_differences(
    systems: Sequence[SystemMetrics],
    metrics: Sequence[str],
    baseline: str,
    directory: Path,
    seeds: str,
) -> tuple[list[Difference], dict[str, RunMetrics]]:
    """Tests systems against one of them and writes the outcome; also gives `per_query_means`."""
    means, best_grade = per_query_means(systems, metrics)
    differences = compare(means, baseline=baseline, seed=TEST_SEED, metrics=metrics)
    of_test = {"best_grade": best_grade, "seed": TEST_SEED, "samples": SAMPLES}
    rules = legend(differences, means, baseline=baseline, **of_test)
    Comparison(differences, baseline, tuple(means), {**rules, "seeds": seeds}).save(directory)
    return differences, means


def significant(differences: Sequence[Difference]) -> set[tuple[str, str]]:
    """Each (system, metric) whose difference from the baseline is marked."""
    return {(one.system, one.metric) for one in differences if one.holm_p < ALPHA}
