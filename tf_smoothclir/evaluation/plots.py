"""Plots: learning curves, scores and grades."""

import io
import itertools
import os
import sys
from collections.abc import Sequence

import matplotlib
import numpy as np

if "matplotlib.pyplot" not in sys.modules and "MPLBACKEND" not in os.environ:
    matplotlib.use("Agg")  # needs no screen; a notebook has a back end of its own
from matplotlib import pyplot as plt

from tf_smoothclir.storage.files import write_bytes

# Okabe and Ito (2008): colour-blind readers can tell them apart.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#000000")
_MARKERS = "os^vDPX*<>"


def learning_curves(path: str | os.PathLike, history: Sequence[dict]) -> None:
    """Draws training loss and validation metrics by epoch."""
    epochs = [record["epoch"] for record in history]
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    left.plot(epochs, [record["loss"] for record in history], "o-", color=COLOURS[0])
    left.set(title="Training loss", xlabel="epoch", ylabel="mean loss of a pair")
    left.set_ylim(bottom=0)
    curves: dict[tuple[float, ...], list[str]] = {}  # equal curves are one
    for name in history[0]["validation"]:
        values = tuple(round(record["validation"][name], 3) for record in history)
        curves.setdefault(values, []).append(name)
    for (values, names), colour, marker in zip(curves.items(), itertools.cycle(COLOURS), _MARKERS):
        label = "\n".join(
            map(", ".join, (names[place : place + 3] for place in range(0, len(names), 3)))
        )
        right.plot(epochs, values, color=colour, marker=marker, markersize=5, label=label)
    lowest = min(map(min, curves))
    right.set(title="Validation", xlabel="epoch", ylabel="mean over queries")
    right.set_ylim(max(0, lowest - 0.1 - 0.5 * (1 - lowest)), 1.02)
    right.legend(loc="lower center", fontsize="small", ncols=2)
    for axes in (left, right):
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.grid(alpha=0.3)
    save_png(figure, path)


def score_density(
    path: str | os.PathLike, scores_by_grade: Sequence[np.ndarray], thresholds: Sequence[float]
) -> None:
    """Draws the distribution of the scores of each grade (Liu et al. 2020, figure 3)."""
    figure, axes = plt.subplots(figsize=(6, 4), layout="constrained")
    bins = np.linspace(-1, 1, 81)
    for grade, scores in enumerate(scores_by_grade):
        if len(scores):
            colour = COLOURS[grade % len(COLOURS)]
            label = f"grade {grade} ({len(scores):,} pairs)"
            axes.hist(
                scores, bins, density=True, histtype="step", color=colour, label=label, lw=1.8
            )
    for place, threshold in enumerate(thresholds, start=1):
        axes.axvline(threshold, color="grey", linestyle="--", lw=1)
        axes.annotate(
            f"θ{place} = {threshold:g}",
            (threshold, 0.98),
            xycoords=("data", "axes fraction"),
            rotation=90,
            va="top",
            ha="right",
            color="dimgrey",
            fontsize="small",
        )
    axes.set(title="Scores by grade", xlabel="smooth cosine similarity", ylabel="density")
    axes.set_xlim(-1, 1)
    axes.legend(loc="upper left", fontsize="small")
    save_png(figure, path)


def save_png(figure, path: str | os.PathLike, *, dpi: int = 120) -> None:
    """Writes a figure as PNG and closes it; the same figure gives the same bytes."""
    content = io.BytesIO()
    figure.savefig(content, dpi=dpi, format="png")
    write_bytes(path, content.getvalue())
    plt.close(figure)
