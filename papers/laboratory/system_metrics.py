"""The metrics of a system over its seeds, and which differences are more than chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.compare import SAMPLES, Difference, compare, read_systems
from tf_smoothclir.evaluation.comparison_report import Comparison, legend
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.settings.training import METRICS

SPLIT = "test"
TEST_SEED = 13  # of the randomisation test
ALPHA = 0.05  # a difference is marked if its Holm-corrected p is below


@dataclasses.dataclass(frozen=True)
class SystemMetrics:
    """The figures of a system on the test split, for each seed that it was trained with."""

    name: str  # of the system
    cells: tuple[Cell, ...]  # one for each seed
    values: dict[str, np.ndarray]  # metric -> `[seeds]`, means over the queries
    queries: dict[str, int]  # metric -> number of queries in a mean

    @property
    def thresholds(self) -> str:
        """The thresholds of all seeds, or the cut points of a loss that has those instead."""
        return ", ".join(f"{value:g}" for value in self.cells[0].segments)

    @property
    def seeds(self) -> tuple[int, ...]:
        """One for each cell."""
        return tuple(cell.seed for cell in self.cells)


def read_system_metrics(name: str, cells: Sequence[Cell]) -> SystemMetrics | None:
    """The metrics of a system over its finished seeds; None if no seed is finished."""
    finished = tuple(cell for cell in cells if cell.finished)
    if not finished:
        return None
    runs = [cell.metrics() for cell in finished]
    values = {m: np.array([run[SPLIT][m] for run in runs]) for m in runs[0][SPLIT]}
    return SystemMetrics(name, finished, values, runs[0]["counts"][SPLIT])


def per_query_means(systems: Sequence[SystemMetrics]) -> tuple[dict[str, RunMetrics], int]:
    """Name -> metrics of each query, averaged over seeds; and the highest grade."""
    files = {
        f"{system.name}, seed {cell.seed}": cell.trec_files(SPLIT)
        for system in systems
        for cell in system.cells
    }
    runs, best_grade = read_systems(files)
    of_systems = {s.name: [runs[f"{s.name}, seed {seed}"] for seed in s.seeds] for s in systems}
    means = {
        name: dataclasses.replace(
            of_seeds[0],
            per_query={m: np.mean([r.per_query[m] for r in of_seeds], axis=0) for m in METRICS},
        )
        for name, of_seeds in of_systems.items()
    }
    return means, best_grade


def save_differences(
    systems: Sequence[SystemMetrics], baseline: str, directory: Path, seeds_note: str
) -> tuple[list[Difference], dict[str, RunMetrics]]:
    """Tests systems against one of them and writes the outcome; also gives `per_query_means`."""
    means, best_grade = per_query_means(systems)
    differences = compare(means, baseline=baseline, seed=TEST_SEED, metrics=METRICS)
    rules = legend(
        differences,
        means,
        baseline=baseline,
        best_grade=best_grade,
        seed=TEST_SEED,
        samples=SAMPLES,
    )
    rules["seeds"] = f"scores of a query: {seeds_note[0].lower()}{seeds_note[1:]}"
    Comparison(differences, baseline, tuple(means), rules).save(directory)
    return differences, means


def significant(differences: Sequence[Difference]) -> set[tuple[str, str]]:
    """Each (system, metric) whose difference from the baseline is marked."""
    marked = (difference for difference in differences if difference.holm_p < ALPHA)
    return {(difference.system, difference.metric) for difference in marked}


def test_note(baseline: str) -> str:
    """What the mark † says."""
    return (
        f"†: differs from {baseline}; paired randomisation test over queries, scores averaged over"
        f" seeds, {SAMPLES:,} patterns, seed {TEST_SEED}, Holm-corrected over the systems of a"
        f" metric, p < {ALPHA:g}. Intervals and effect sizes: <set>-significance/."
    )
