"""The gap between the loss of new pairs and of training pairs, beside the bound of Theorem 3.

Source: Liu et al., 2020, "Cross-Lingual Document Retrieval with Smooth Learning", section 4. The
theorem is about SGD whose step t is at most c/t; the runs are those of any other experiment.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.evaluation.trec_files import read_qrels, read_run
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.papers.laboratory.cells import CellDirectory
from tf_smoothclir.papers.laboratory.system_metrics import SPLIT, SystemMetrics
from tf_smoothclir.papers.laboratory.tables import Table
from tf_smoothclir.papers.liu2020 import theory

STEP_CONSTANT = 0.01  # the first step is the paper's learning rate
DELTA = 0.05


@dataclasses.dataclass(frozen=True)
class Gap:
    """The losses of a system, means over its seeds."""

    system: str  # its name
    pairs: int  # n, number of training pairs
    training: float  # mean SOSL of the training pairs
    test: float  # mean SOSL of the pairs of the test queries' candidate lists
    bound: float  # what `test - training` stays below with probability 1 - δ, for the theorem's SGD


def gap_of(system: SystemMetrics) -> Gap:
    """The losses of a system whose loss is SOSL."""
    settings = system.cells[0].cell.settings
    pairs = round(np.mean([cell.score_counts().sum() for cell in system.cells]))
    thresholds = settings.model.thresholds
    maximum = theory.sosl_maximum(thresholds)
    beta = theory.sgd_stability(
        pairs=pairs,
        steps=pairs * settings.training.epochs,
        step_constant=STEP_CONSTANT,
        constants=theory.model(settings.model.epsilon, thresholds),
        loss_maximum=maximum,
    )
    return Gap(
        system.name,
        pairs,
        float(np.mean([_training_loss(cell) for cell in system.cells])),
        float(np.mean([_test_loss(cell) for cell in system.cells])),
        theory.generalization_bound(beta, pairs=pairs, loss_maximum=maximum, delta=DELTA),
    )


def gap_table(column: str, gaps: Sequence[Gap]) -> Table:
    """The table of an experiment; `column` names what the systems differ in."""
    columns = (column, "training pairs n", "training loss", "test loss", "gap", "bound")
    rows = (
        (
            gap.system,
            f"{gap.pairs:,}",
            *(f"{value:.4f}" for value in (gap.training, gap.test, gap.test - gap.training)),
            f"{gap.bound:.3g}",
        )
        for gap in gaps
    )
    return Table("Mean SOSL of training and of new pairs", columns, tuple(rows))


def plot_gaps(path: Path, title: str, gaps: Sequence[Gap]) -> None:
    """Draws gap and bound against the number of training pairs."""
    figure, axes = plt.subplots(figsize=(6.5, 4.4), constrained_layout=True)
    pairs = [gap.pairs for gap in gaps]
    axes.plot(pairs, [gap.bound for gap in gaps], "s--", color=COLOURS[1], label="bound, SGD c/t")
    measured = [gap.test - gap.training for gap in gaps]
    axes.plot(pairs, measured, "o-", color=COLOURS[0], label="measured, this training")
    axes.set(xscale="log", yscale="log", title=title)
    axes.set(xlabel="training pairs n", ylabel="test loss - training loss (SOSL)")
    axes.grid(alpha=0.3)
    axes.legend()
    save_png(figure, path, dpi=150)


def _training_loss(cell: CellDirectory) -> float:
    """The mean loss of the training pairs, from the middle of the bin of each score."""
    counts = cell.score_counts()
    edges = np.linspace(-1, 1, counts.shape[1] + 1)
    middles = np.tile((edges[1:] + edges[:-1]) / 2, len(counts))
    grades = np.repeat(np.arange(len(counts)), counts.shape[1])
    return float(np.average(_sosl(cell, grades, middles), weights=counts.ravel()))


def _test_loss(cell: CellDirectory) -> float:
    run_file, qrels_file = cell.trec_files(SPLIT)
    judged = read_qrels(qrels_file)
    pairs = [
        (judged[query][document], score)
        for query, scores in read_run(run_file).items()
        for document, score in scores.items()
    ]
    grades, scores = np.array(pairs).T
    return float(_sosl(cell, grades.astype(np.int64), scores).mean())


def _sosl(cell: CellDirectory, grades: np.ndarray, scores: np.ndarray) -> np.ndarray:
    loss = SmoothOrdinalSearchLoss(cell.cell.settings.model.thresholds, reduction="none")
    return loss(grades, scores.astype(np.float32)).numpy()
