"""A heat map of a metric over the two thresholds of three grades."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import patches

from tf_smoothclir.evaluation.plots import plt, save_png

_BEST = {"fill": False, "edgecolor": "#D55E00", "linewidth": 3}  # vermilion, Okabe and Ito (2008)
_EMPTY = "#d9d9d9"  # not tried, or thresholds that do not rise


def threshold_heat_map(
    path: str | os.PathLike,
    scores: Mapping[tuple[float, float], float],
    levels: Sequence[float],
    *,
    metric: str,
    title: str,
) -> None:
    """Draws a metric over θ_1 (across) and θ_2 (up), with a frame around the best pair."""
    across, up = list(levels[:-1]), list(levels[1:])
    cells = np.full((len(up), len(across)), np.nan)
    for (first, second), score in scores.items():
        cells[up.index(second), across.index(first)] = score
    figure, axes = plt.subplots(figsize=(8.7, 7.3), constrained_layout=True)
    axes.set_facecolor(_EMPTY)
    image = axes.imshow(cells, cmap="cividis", origin="lower", aspect="equal")
    middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
    for row, column in np.argwhere(~np.isnan(cells)):
        score = cells[row, column]
        colour = "white" if score <= middle else "black"
        axes.text(column, row, f"{score:.3f}", ha="center", va="center", color=colour, size=9)
    row, column = np.unravel_index(np.nanargmax(cells), cells.shape)
    axes.add_patch(patches.Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, **_BEST))
    axes.set(title=title, xlabel="θ$_1$ (lower threshold)", ylabel="θ$_2$ (upper threshold)")
    axes.set_xticks(range(len(across)), [f"{level:g}" for level in across])
    axes.set_yticks(range(len(up)), [f"{level:g}" for level in up])
    axes.spines[:].set_visible(False)
    figure.colorbar(image, label=metric, shrink=0.85)
    save_png(figure, path)
