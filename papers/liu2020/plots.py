"""Plots of trained systems: Figures 3, 4 and 5 of the paper."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.settings.training import METRICS

_LINES = ("-", "--", "-.", ":")
_MARKERS = "os^vDPX"
_GRADES = ("NR", "SR", "MR")  # as the paper names grades 0, 1 and 2


def plot_score_densities(path: Path, title: str, systems: Sequence[SystemMetrics]) -> None:
    """Draws the distribution of the training pairs' scores by grade, one panel for each system."""
    rows = -(-len(systems) // 2)
    figure, axes = plt.subplots(
        rows, 2, figsize=(9, 3.2 * rows), sharex=True, squeeze=False, constrained_layout=True
    )
    for panel, system in zip(axes.flat, systems):
        shares = _shares(system)
        edges = np.linspace(-1, 1, shares.shape[1] + 1)
        for grade, (of_grade, name) in enumerate(zip(shares, _GRADES)):
            look = {"color": COLOURS[grade], "linestyle": _LINES[grade], "linewidth": 1.8}
            panel.stairs(of_grade / np.diff(edges), edges, label=f"grade {grade} ({name})", **look)
        for threshold in system.cells[0].segments:
            panel.axvline(threshold, color="grey", linewidth=1, zorder=0)
        panel.set(title=f"{system.name}, θ = {system.thresholds}", xlim=(-1, 1))
        panel.set_ylim(bottom=0)
        panel.grid(alpha=0.3)
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


def _shares(system: SystemMetrics) -> np.ndarray:
    """`[K, bins]`: the shares of the training pairs of each grade by score, over all seeds."""
    counts = np.sum([cell.score_counts() for cell in system.cells], axis=0)
    return counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)


def grade_overlaps(system: SystemMetrics) -> dict[str, float]:
    """The overlapping coefficient, ∫ min(p, q), of the score histograms of two grades."""
    shares = _shares(system)
    return {
        f"{_GRADES[low]} and {_GRADES[high]}": float(np.minimum(shares[low], shares[high]).sum())
        for low, high in ((0, 1), (1, 2), (0, 2))
    }


def plot_metric_curves(
    path: Path, title: str, systems: Sequence[SystemMetrics], *, label: str
) -> None:
    """Draws each metric against the setting that varies; bars span the lowest and highest seed."""
    numbers = [float(system.name) for system in systems]
    figure, axes = plt.subplots(figsize=(7.5, 5), constrained_layout=True)
    for metric, colour, marker, line in zip(METRICS, COLOURS, _MARKERS, itertools.cycle(_LINES)):
        of_systems = [system.values[metric] for system in systems]
        low, mean, high = np.transpose([(of.min(), of.mean(), of.max()) for of in of_systems])
        bars = np.maximum([mean - low, high - mean], 0)
        look = {"color": colour, "marker": marker, "linestyle": line}
        axes.errorbar(numbers, mean, yerr=bars, markersize=5, capsize=3, label=metric, **look)
    axes.set(title=title, xlabel=label, xticks=numbers)
    axes.set_ylabel("mean over test queries (bars: lowest and highest seed)")
    axes.grid(alpha=0.3)
    figure.legend(loc="outside right center")
    save_png(figure, path, dpi=150)
