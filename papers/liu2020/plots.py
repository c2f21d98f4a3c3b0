"""Plots of trained systems: Figures 3, 4 and 5 of the paper."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.settings.training import METRICS

_LINES = ("-", "--", "-.", ":")
_MARKERS = "os^vDPX"
_GRADES = {0: "grade 0 (NR)", 1: "grade 1 (SR)", 2: "grade 2 (MR)"}


def plot_score_densities(path: Path, title: str, systems: Sequence[SystemMetrics]) -> None:
    """Draws the distribution of the training pairs' scores by grade, one panel for each system."""
    rows = -(-len(systems) // 2)
    figure, axes = plt.subplots(
        rows, 2, figsize=(9, 3.2 * rows), sharex=True, squeeze=False, constrained_layout=True
    )
    for panel, system in zip(axes.flat, systems):
        _density_panel(panel, system)
    for unused in axes.flat[len(systems) :]:
        unused.set_visible(False)
    for panel in axes.flat[max(0, len(systems) - 2) : len(systems)]:  # lowest of each column
        panel.set_xlabel("smooth cosine similarity of the pair")
        panel.xaxis.set_tick_params(labelbottom=True)
    for panel in axes[:, 0]:
        panel.set_ylabel("density")
    axes[0, 0].legend(fontsize="small")
    figure.suptitle(title)
    save_png(figure, path, dpi=150)


def _density_panel(panel, system: SystemMetrics) -> None:
    counts = _score_counts(system)
    edges = np.linspace(-1, 1, counts.shape[1] + 1)
    for grade, of_grade in enumerate(counts):
        shares = of_grade / max(of_grade.sum(), 1)
        panel.stairs(
            shares / np.diff(edges),
            edges,
            color=COLOURS[grade % len(COLOURS)],
            linestyle=_LINES[grade % len(_LINES)],
            linewidth=1.8,
            label=_GRADES.get(grade, f"grade {grade}"),
        )
    for threshold in system.thresholds:
        panel.axvline(threshold, color="grey", linewidth=1, zorder=0)
    panel.set(title=f"{system.name}, θ = {system.thresholds}", xlim=(-1, 1))
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)


def _score_counts(system: SystemMetrics) -> np.ndarray:
    """`[K, bins]`: training pairs of all seeds, by grade and score."""
    return np.sum([cell.score_counts() for cell in system.cells], axis=0)


def grade_overlaps(system: SystemMetrics) -> dict[str, float]:
    """The overlapping coefficient, ∫ min(p, q), of the score histograms of two grades."""
    counts = _score_counts(system)
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    pairs = {"NR and SR": (0, 1), "SR and MR": (1, 2), "NR and MR": (0, 2)}
    return {
        name: float(np.minimum(shares[low], shares[high]).sum())
        for name, (low, high) in pairs.items()
    }


def plot_metric_curves(
    path: Path, title: str, systems: Sequence[SystemMetrics], *, label: str
) -> None:
    """Draws each metric against the setting that varies; bars span the lowest and highest seed."""
    numbers = [float(system.name) for system in systems]
    figure, axes = plt.subplots(figsize=(7.5, 5), constrained_layout=True)
    for index, metric in enumerate(METRICS):
        values = np.array([system.values[metric].mean() for system in systems])
        low = values - [system.values[metric].min() for system in systems]
        high = [system.values[metric].max() for system in systems] - values
        axes.errorbar(
            numbers,
            values,
            yerr=np.maximum([low, high], 0),
            color=COLOURS[index],
            marker=_MARKERS[index],
            linestyle=_LINES[index % len(_LINES)],
            markersize=5,
            capsize=3,
            label=metric,
        )
    axes.set(title=title, xlabel=label, xticks=numbers)
    axes.set_ylabel("mean over test queries (bars: lowest and highest seed)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center")
    save_png(figure, path, dpi=150)
