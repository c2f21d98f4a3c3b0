"""What finished cells amount to: figures over seeds, and differences that are more than chance."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

import numpy as np

from tf_smoothclir.evaluation.compare import Difference, compare, read_systems
from tf_smoothclir.evaluation.trec_files import RunMetrics
from tf_smoothclir.experiments.cells import CellDirectory
from tf_smoothclir.settings.run import METRICS

SPLIT = "test"
FULL_MRR = "full/MRR@10"
ALPHA = 0.05  # a difference is marked where its p, Holm-corrected, is below


@dataclasses.dataclass(frozen=True)
class Result:
    """A system, trained with some seeds, on the test split.

    Attributes:
        name: Of the system.
        cells: One a seed.
        values: Metric -> `[seeds]`, each the mean over the queries; full retrieval as "full/...".
        queries: Metric -> number of queries in the mean.
        epoch_seconds: `[seeds]`, of training.
        peak_mb: `[seeds]`, the most memory of the process.
    """

    name: str
    cells: tuple[CellDirectory, ...]
    values: dict[str, np.ndarray]
    queries: dict[str, int]
    epoch_seconds: np.ndarray
    peak_mb: np.ndarray

    @property
    def thresholds(self) -> tuple[float, ...]:
        """With which all seeds were trained; cut points where the loss has those."""
        return self.cells[0].cell.segments

    @property
    def seeds(self) -> tuple[int, ...]:
        """One a cell."""
        return tuple(cell.cell.settings.training.seed for cell in self.cells)

    @property
    def score_counts(self) -> np.ndarray:
        """`[K, bins]`: training pairs of all seeds by grade and score."""
        return np.sum([cell.score_counts() for cell in self.cells], axis=0)


def read_result(name: str, cells: Sequence[CellDirectory]) -> Result | None:
    """Returns the result of a system, over the seeds that are finished; None where none is."""
    finished = tuple(cell for cell in cells if cell.finished)
    if not finished:
        return None
    metrics = [cell.metrics() for cell in finished]
    training = [one["training"] for one in metrics]
    return Result(
        name,
        finished,
        {metric: np.array([one[SPLIT][metric] for one in metrics]) for metric in metrics[0][SPLIT]},
        metrics[0]["counts"][SPLIT],
        epoch_seconds=np.array([one["seconds"] / one["epochs"] for one in training]),
        peak_mb=np.array([one["peak_rss_mb"] for one in training]),
    )


def per_query_means(
    results: Sequence[Result], metrics: Sequence[str] = METRICS
) -> tuple[dict[str, RunMetrics], int]:
    """Returns name -> metrics of each query, averaged over seeds, and the highest grade.

    Raises:
        InputError: Runs were judged on different lists.
    """
    runs, best_grade = _read(results, full=False)
    if FULL_MRR in metrics:
        for name, full in _read(results, full=True)[0].items():
            reciprocal = full.per_query["MRR_mr"]
            beyond = reciprocal < 1 / 10.5  # of float32
            runs[name].per_query[FULL_MRR] = np.where(beyond, 0, reciprocal)
    means = {
        result.name: _mean([runs[_key(result.name, seed)] for seed in result.seeds], metrics)
        for result in results
    }
    return means, best_grade


def _read(results: Sequence[Result], *, full: bool) -> tuple[dict[str, RunMetrics], int]:
    return read_systems(
        {
            _key(result.name, seed): cell.trec_files(SPLIT, full=full)
            for result in results
            for seed, cell in zip(result.seeds, result.cells)
        }
    )


def _key(name: str, seed: int) -> str:
    return f"{name}, seed {seed}"


def _mean(runs: Sequence[RunMetrics], metrics: Sequence[str]) -> RunMetrics:
    per_query = {
        metric: np.mean([run.per_query[metric] for run in runs], axis=0) for metric in metrics
    }
    return dataclasses.replace(runs[0], per_query=per_query)


def differences_from_first(
    systems: Mapping[str, RunMetrics], seed: int, metrics: Sequence[str] = METRICS
) -> list[Difference]:
    """Returns what sets each system apart from the first one; empty where that is alone."""
    return compare(systems, seed=seed, metrics=metrics) if len(systems) > 1 else []


def significant(differences: Sequence[Difference]) -> set[tuple[str, str]]:
    """Returns the (system, metric) whose difference from the baseline is marked."""
    return {(one.system, one.metric) for one in differences if one.holm_p < ALPHA}
