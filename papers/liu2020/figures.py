"""The figures of Liu et al., 2020.

Source: "Cross-Lingual Document Retrieval with Smooth Learning". Figures 1 and 2: the gradient of
SCS, and SOSL beside MSE; the package's own layers compute the values, and automatic differentiation
through them the gradients. Figures 3, 4 and 5: plots of trained systems.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from matplotlib.colors import SymLogNorm

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.losses.ordinal import SegmentMeanSquaredError, SmoothOrdinalSearchLoss
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.papers.laboratory.tables import Page, Written
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.printing import csv_table

EPSILONS = (0.05, 0.2, 0.5)
DOCUMENT = (1.0, 1.0)
THRESHOLDS = (0.0, 0.5)  # the paper's, of Figure 2
_LINES = ("-", "--", "-.", ":")
_MARKERS = "os^vDPX"
_GRADES = ("NR", "SR", "MR")  # as the paper names grades 0, 1 and 2


def _scs_gradients(points: np.ndarray, epsilon: float) -> np.ndarray:
    """∂r_ε(x, (1, 1))/∂x for each x: `[n, 2]` to `[n, 2]`, float64."""
    layer, vectors = SmoothCosineSimilarity(epsilon, dtype="float64"), tf.constant(points)
    with tf.GradientTape() as tape:
        tape.watch(vectors)
        scores = layer([vectors, tf.tile(tf.constant([DOCUMENT], tf.float64), [len(points), 1])])
    return tape.gradient(scores, vectors).numpy()


def figure1(page: Page) -> Written:
    """Draws how the gradient of SCS behaves near the zero vector (Figure 1).

    Above, as in the paper: heat maps of ∂r_ε((x1, x2), (1, 1))/∂x1 for ε = 0.05, 0.2, 0.5. Below:
    the norm of the gradient against ‖x‖, for x orthogonal to (1, 1), where it is largest; the plain
    cosine (ε = 0) has no bound.
    """
    axis = np.linspace(-1, 1, 81)  # with the zero vector in the middle
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    maps = {epsilon: _scs_gradients(grid, epsilon)[:, 0] for epsilon in EPSILONS}
    norms = np.geomspace(1e-3, 10, 161)
    orthogonal = norms[:, None] * np.array([1.0, -1.0]) / np.sqrt(2)
    curves = {
        epsilon: np.linalg.norm(_scs_gradients(orthogonal, epsilon), axis=-1)
        for epsilon in (*EPSILONS, 0.0)
    }
    figure = plt.figure(figsize=(8, 6.8), constrained_layout=True)
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.15))
    _draw_heat_maps(above, axis, maps)
    _draw_norms(below.subplots(), norms, curves)
    rows = [
        (plot, epsilon, *point, value)
        for plot, points, drawn in (
            ("derivative by x1", grid, maps),
            ("norm of the gradient", orthogonal, curves),
        )
        for epsilon, values in drawn.items()
        for point, value in zip(points, values)
    ]
    return _written(figure, page, ("plot", "epsilon", "x1", "x2", "value"), rows)


def _draw_heat_maps(figure, axis: np.ndarray, maps: dict[float, np.ndarray]) -> None:
    largest = max(np.abs(values).max() for values in maps.values())
    # Linear near 0 and logarithmic above: one scale shows all three panels.
    colours = {"cmap": "RdBu_r", "norm": SymLogNorm(0.1, vmin=-largest, vmax=largest)}
    panels = figure.subplots(1, len(maps), sharey=True)
    for axes, (epsilon, values) in zip(panels, maps.items()):
        values = values.reshape(len(axis), -1)
        image = axes.pcolormesh(axis, axis, values, rasterized=True, **colours)
        axes.set(title=f"ε = {epsilon:g}", xlabel="x1", aspect="equal")
        axes.set(xticks=(-1, 0, 1), yticks=(-1, 0, 1))
    panels[0].set_ylabel("x2")
    figure.colorbar(image, ax=panels, label="∂r/∂x1", shrink=0.9, ticks=(-10, -1, 0, 1, 10))
    figure.suptitle("Smooth cosine similarity of (x1, x2) and (1, 1): derivative by x1")


def _draw_norms(axes, norms: np.ndarray, curves: dict[float, np.ndarray]) -> None:
    # The plain cosine, shown for comparison, is dashed black.
    looks = [*zip(COLOURS, ("-", "-.", ":")), ("black", "--")]
    for (epsilon, values), (colour, style) in zip(curves.items(), looks):
        label = f"ε = {epsilon:g}" if epsilon else "ε = 0, plain cosine"
        axes.loglog(norms, values, color=colour, linestyle=style, lw=2.2, label=label)
        if epsilon:
            place = {"xytext": (4, 3), "textcoords": "offset points"}
            bound = norms[0], 1 / epsilon
            axes.annotate(f"1/ε = {1 / epsilon:g}", bound, color=colour, **place)
    axes.set(title="Norm of the gradient for x orthogonal to (1, 1)")
    axes.set(xlabel="‖x‖", ylabel="‖∂r/∂x‖", xlim=(norms[0], norms[-1]))
    axes.grid(alpha=0.3)
    axes.legend()


def figure2(page: Page) -> Written:
    """Draws SOSL and MSE against the score for each grade (Figure 2), with the paper's thresholds.

    The segment of the grade, where SOSL is zero, is shaded. MSE aims at the middle of the segment,
    as in the authors' code.
    """
    scores = np.linspace(-1, 1, 201)
    losses = {
        "SOSL": SmoothOrdinalSearchLoss(THRESHOLDS, reduction="none"),
        "MSE": SegmentMeanSquaredError(THRESHOLDS, reduction="none"),
    }
    edges, rows = (-1.0, *THRESHOLDS, 1.0), []
    figure, panels = plt.subplots(1, 3, figsize=(8, 3.8), sharey=True, constrained_layout=True)
    for grade, axes in enumerate(panels):
        axes.axvspan(edges[grade], edges[grade + 1], color="0.88", label="segment of the grade")
        for (name, loss), colour, style in zip(losses.items(), COLOURS, ("-", "--")):
            values = loss(np.full(len(scores), grade), scores).numpy()
            axes.plot(scores, values, color=colour, linestyle=style, lw=2.2, label=name)
            rows += [(name, grade, *point) for point in zip(scores, values)]
        axes.set(title=f"grade {grade}", xlabel="score r", xlim=(-1, 1), xticks=edges)
        axes.grid(alpha=0.3)
    panels[0].set(ylabel="loss", ylim=(-0.06, None))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    stated = ", ".join(f"{threshold:g}" for threshold in THRESHOLDS)
    figure.suptitle(f"SOSL and MSE with thresholds ({stated})")
    return _written(figure, page, ("loss", "grade", "score", "value"), rows)


def _written(figure, page: Page, columns, rows) -> Written:
    """The figure as PNG, and its values."""
    save_png(figure, page.plot, dpi=150)
    texts = ([of if isinstance(of, str) else f"{of:.6g}" for of in row] for row in rows)
    return Written([], [page.plot], csv=csv_table(columns, texts))


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
