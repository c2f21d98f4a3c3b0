"""The metrics of a system over its seeds, and which differences are more than chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.evaluation.compare import SAMPLES, Difference, read_systems
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
    named = {f"{of.name}, seed {cell.seed}": cell for of in systems for cell in of.cells}
    runs, best_grade = read_systems({name: of.trec_files(SPLIT) for name, of in named.items()})
    means = {}
    for system in systems:
        of_seeds = [runs[f"{system.name}, seed {seed}"] for seed in system.seeds]
        mean = {m: np.mean([run.per_query[m] for run in of_seeds], axis=0) for m in METRICS}
        means[system.name] = dataclasses.replace(of_seeds[0], per_query=mean)
    return means, best_grade


def significant(differences: Sequence[Difference]) -> set[tuple[str, str]]:
    """Each (system, metric) whose difference from the baseline is marked."""
    return {(of.system, of.metric) for of in differences if of.holm_p < ALPHA}


def test_note(baseline: str) -> str:
    """What the mark † says."""
    return (
        f"†: differs from {baseline}; paired randomisation test over queries, scores averaged over"
        f" seeds, {SAMPLES:,} patterns, seed {TEST_SEED}, Holm-corrected over the systems of a"
        f" metric, p < {ALPHA:g}. Intervals and effect sizes: <set>-significance/."
    )
