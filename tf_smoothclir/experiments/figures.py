"""Figures 3, 4 and 5 of the paper, and that of the ablation, as PNG and SVG."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.compare import Difference
from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png_and_svg
from tf_smoothclir.experiments.scores import Result
from tf_smoothclir.experiments.tables import threshold_text
from tf_smoothclir.settings.run import METRICS

_LINES = ("-", "--", "-.", ":")
_MARKERS = "os^vDPX"
_GRADES = {0: "grade 0 (NR)", 1: "grade 1 (SR)", 2: "grade 2 (MR)"}


def densities(path: Path, title: str, results: Sequence[Result]) -> list[Path]:
    """Draws how the scores of the training pairs of each grade are distributed, a panel a loss.

    Args:
        path: Without suffix.
        title: Of the figure.
        results: The losses; each panel has the pairs of all seeds.

    Returns:
        The PNG and the SVG file.
    """
    rows = -(-len(results) // 2)
    figure, axes = plt.subplots(
        rows, 2, figsize=(9, 3.2 * rows), sharex=True, squeeze=False, constrained_layout=True
    )
    for panel, result in zip(axes.flat, results):
        _density_panel(panel, result)
    for unused in axes.flat[len(results) :]:
        unused.set_visible(False)
    for panel in axes.flat[max(0, len(results) - 2) : len(results)]:  # the lowest of each column
        panel.set_xlabel("smooth cosine similarity of the pair")
        panel.xaxis.set_tick_params(labelbottom=True)
    for panel in axes[:, 0]:
        panel.set_ylabel("density")
    axes[0, 0].legend(fontsize="small")
    figure.suptitle(title)
    return save_png_and_svg(figure, path)


def _density_panel(panel, result: Result) -> None:
    counts = result.score_counts
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
    for threshold in result.thresholds:
        panel.axvline(threshold, color="grey", linewidth=1, zorder=0)
    panel.set(title=f"{result.name}, θ = {threshold_text(result)}", xlim=(-1, 1))
    panel.set_ylim(bottom=0)
    panel.grid(alpha=0.3)


def overlaps(result: Result) -> dict[str, float]:
    """Returns how much the score distributions of two grades share: 0 nothing, 1 all.

    The overlapping coefficient ∫ min(p, q) of the two histograms.
    """
    counts = result.score_counts
    shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
    pairs = {"NR and SR": (0, 1), "SR and MR": (1, 2), "NR and MR": (0, 2)}
    return {
        name: float(np.minimum(shares[low], shares[high]).sum())
        for name, (low, high) in pairs.items()
    }


def curves(path: Path, title: str, label: str, results: Sequence[Result]) -> list[Path]:
    """Draws each metric against a number that varies, from the lowest to the highest seed.

    Args:
        path: Without suffix.
        title: Of the figure.
        label: What varies, with its unit.
        results: One for each number, which is its name.

    Returns:
        The PNG and the SVG file.
    """
    numbers = [float(result.name) for result in results]
    figure, axes = plt.subplots(figsize=(7.5, 5), constrained_layout=True)
    for index, metric in enumerate(METRICS):
        values = np.array([result.values[metric].mean() for result in results])
        low = values - [result.values[metric].min() for result in results]
        high = [result.values[metric].max() for result in results] - values
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
    return save_png_and_svg(figure, path)


def gains(path: Path, title: str, baseline: str, rows: Sequence[Difference]) -> list[Path]:
    """Draws how much better than the baseline each system is, a panel a metric.

    Args:
        path: Without suffix.
        title: Of the figure.
        baseline: Name of the system that the others are compared with.
        rows: The comparison.

    Returns:
        The PNG and the SVG file.
    """
    metrics = list(dict.fromkeys(row.metric for row in rows))
    names = list(dict.fromkeys(row.system for row in rows))
    figure, axes = plt.subplots(
        1,
        len(metrics),
        figsize=(2.2 + 2.2 * len(metrics), 1.4 + 0.32 * len(names)),
        sharey=True,
        squeeze=False,
        constrained_layout=True,
    )
    for panel, metric, colour in zip(axes[0], metrics, COLOURS):
        of_metric = [row for row in rows if row.metric == metric]
        middle = np.array([row.difference for row in of_metric])
        ends = np.array([(row.low, row.high) for row in of_metric]).T
        panel.axvline(0, color="grey", linewidth=1)
        panel.errorbar(
            middle,
            [names.index(row.system) for row in of_metric],
            xerr=np.abs(ends - middle),
            color=colour,
            marker="o",
            linestyle="",
            capsize=3,
        )
        panel.set(title=metric, yticks=range(len(names)), yticklabels=names)
        panel.locator_params(axis="x", nbins=4)
        panel.grid(alpha=0.3)
    axes[0, 0].invert_yaxis()
    figure.suptitle(title)
    figure.supxlabel(f"difference from {baseline} (bars: 95% interval over test queries)")
    return save_png_and_svg(figure, path)
