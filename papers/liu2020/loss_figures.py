"""Figures 1 and 2 of Liu et al., 2020: the gradient of SCS, and SOSL beside MSE.

Source: "Cross-Lingual Document Retrieval with Smooth Learning". The package's own layers compute
the values, and automatic differentiation through them the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from matplotlib.colors import SymLogNorm

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.losses.ordinal import SegmentMeanSquaredError, SmoothOrdinalSearchLoss
from tf_smoothclir.papers.laboratory.experiment import Experiment
from tf_smoothclir.papers.laboratory.tables import Written
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.printing import csv_table

EPSILONS = (0.05, 0.2, 0.5)
DOCUMENT = (1.0, 1.0)
THRESHOLDS = (0.0, 0.5)  # the paper's, of Figure 2


def scs_gradients(vectors: np.ndarray, epsilon: float) -> np.ndarray:
    """∂r_ε(x, (1, 1))/∂x for each x: `[n, 2]` to `[n, 2]`, float64."""
    layer = SmoothCosineSimilarity(epsilon, dtype="float64")
    documents = tf.tile(tf.constant([DOCUMENT], tf.float64), [len(vectors), 1])
    return _gradients(lambda x: layer([x, documents]), vectors)


def _gradients(function: Callable, points: np.ndarray) -> np.ndarray:
    points = tf.constant(points, tf.float64)
    with tf.GradientTape() as tape:
        tape.watch(points)
        values = function(points)
    return tape.gradient(values, points).numpy()


def figure1(experiment: Experiment, study: None, directory: Path) -> Written:
    """Draws how the gradient of SCS behaves near the zero vector (Figure 1).

    Above, as in the paper: heat maps of ∂r_ε((x1, x2), (1, 1))/∂x1 for ε = 0.05, 0.2, 0.5. Below:
    the norm of the gradient against ‖x‖, for x orthogonal to (1, 1), where it is largest; the plain
    cosine (ε = 0) has no bound.
    """
    axis = np.linspace(-1, 1, 81)  # with the zero vector in the middle
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    maps = [scs_gradients(grid, epsilon)[:, 0] for epsilon in EPSILONS]
    norms = np.geomspace(1e-3, 10, 161)
    orthogonal = norms[:, None] * np.array([1.0, -1.0]) / np.sqrt(2)
    curves = {
        epsilon: np.linalg.norm(scs_gradients(orthogonal, epsilon), axis=-1)
        for epsilon in (*EPSILONS, 0.0)
    }
    figure = plt.figure(figsize=(8, 6.8), constrained_layout=True)
    above, below = figure.subfigures(2, 1, height_ratios=(1, 1.15))
    _heat_maps(above, axis, maps)
    _norm_curves(below.subplots(), norms, curves)
    rows = [
        ("derivative by x1", epsilon, *point, value)
        for epsilon, values in zip(EPSILONS, maps)
        for point, value in zip(grid, values)
    ]
    rows += [
        ("norm of the gradient", epsilon, *point, value)
        for epsilon, values in curves.items()
        for point, value in zip(orthogonal, values)
    ]
    return _save(
        figure, directory / f"{experiment.name}.png", ["plot", "epsilon", "x1", "x2", "value"], rows
    )


def _heat_maps(figure, axis: np.ndarray, maps: Sequence[np.ndarray]) -> None:
    largest = max(np.abs(values).max() for values in maps)
    panels = figure.subplots(1, len(maps), sharey=True)
    for axes, epsilon, values in zip(panels, EPSILONS, maps):
        image = axes.pcolormesh(
            axis,
            axis,
            values.reshape(len(axis), -1),
            cmap="RdBu_r",
            # Linear near 0 and logarithmic above: one scale shows all three panels.
            norm=SymLogNorm(0.1, vmin=-largest, vmax=largest),
            rasterized=True,
        )
        axes.set(title=f"ε = {epsilon:g}", xlabel="x1", aspect="equal")
        axes.set_xticks((-1, 0, 1))
        axes.set_yticks((-1, 0, 1))
    panels[0].set_ylabel("x2")
    figure.colorbar(image, ax=panels, label="∂r/∂x1", shrink=0.9, ticks=(-10, -1, 0, 1, 10))
    figure.suptitle("Smooth cosine similarity of (x1, x2) and (1, 1): derivative by x1")


def _norm_curves(axes, norms: np.ndarray, curves: dict[float, np.ndarray]) -> None:
    # The plain cosine, shown for comparison, is dashed black.
    looks = [*zip(COLOURS, ("-", "-.", ":")), ("black", "--")]
    for (epsilon, values), (colour, style) in zip(curves.items(), looks):
        label = f"ε = {epsilon:g}" if epsilon else "ε = 0, plain cosine"
        axes.loglog(norms, values, color=colour, linestyle=style, lw=2.2, label=label)
        if epsilon:
            axes.annotate(
                f"1/ε = {1 / epsilon:g}",
                (norms[0], 1 / epsilon),
                xytext=(4, 3),
                textcoords="offset points",
                color=colour,
            )
    axes.set(
        title="Norm of the gradient for x orthogonal to (1, 1)",
        xlabel="‖x‖",
        ylabel="‖∂r/∂x‖",
        xlim=(norms[0], norms[-1]),
    )
    axes.grid(alpha=0.3)
    axes.legend()


def figure2(experiment: Experiment, study: None, directory: Path) -> Written:
    """Draws SOSL and MSE against the score for each grade (Figure 2), with the paper's thresholds.

    The segment of the grade, where SOSL is zero, is shaded. MSE aims at the middle of the segment,
    as in the authors' code.
    """
    scores = np.linspace(-1, 1, 201)
    losses = {
        "SOSL": SmoothOrdinalSearchLoss(THRESHOLDS, reduction="none"),
        "MSE": SegmentMeanSquaredError(THRESHOLDS, reduction="none"),
    }
    edges = (-1.0, *losses["SOSL"].thresholds, 1.0)
    grades = range(len(edges) - 1)
    figure, panels = plt.subplots(
        1, len(grades), figsize=(8, 3.8), sharey=True, constrained_layout=True
    )
    rows = []
    for grade, axes in zip(grades, panels):
        axes.axvspan(edges[grade], edges[grade + 1], color="0.88", label="segment of the grade")
        for (name, loss), colour, style in zip(losses.items(), COLOURS, ("-", "--")):
            values = loss(np.full(len(scores), grade), scores).numpy()
            axes.plot(scores, values, color=colour, linestyle=style, lw=2.2, label=name)
            rows += [(name, grade, *point) for point in zip(scores, values)]
        axes.set(title=f"grade {grade}", xlabel="score r", xlim=(-1, 1))
        axes.set_xticks((-1, *edges[1:-1], 1))
        axes.grid(alpha=0.3)
    panels[0].set(ylabel="loss", ylim=(-0.06, None))
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    stated = ", ".join(f"{threshold:g}" for threshold in edges[1:-1])
    figure.suptitle(f"SOSL and MSE with thresholds ({stated})")
    return _save(
        figure, directory / f"{experiment.name}.png", ["loss", "grade", "score", "value"], rows
    )


def _save(figure, png: Path, columns: list[str], rows: list[tuple]) -> Written:
    """The figure as PNG, and its values."""
    save_png(figure, png, dpi=150)
    return Written([], [png], csv=csv_table(columns, (map(_cell, row) for row in rows)))


def _cell(value) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"
