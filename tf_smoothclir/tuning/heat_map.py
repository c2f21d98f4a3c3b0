"""A heat map of a metric over the two thresholds of three grades."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import patches

from tf_smoothclir.evaluation.plots import plt, save_png

_UNTRIED = {"facecolor": "#d9d9d9", "edgecolor": "white", "hatch": "///", "linewidth": 0}
_BEST = {"fill": False, "edgecolor": "#D55E00", "linewidth": 3}  # vermilion, Okabe and Ito (2008)


def threshold_heat_map(
    path: str | os.PathLike,
    scores: Mapping[tuple[float, float], float],
    levels: Sequence[float],
    *,
    best: tuple[float, float],
    metric: str,
    title: str,
) -> None:
    """Draws a metric over θ_1 (across) and θ_2 (up)."""
    firsts, seconds = list(levels[:-1]), list(levels[1:])
    cells = np.full((len(seconds), len(firsts)), np.nan)
    for (first, second), score in scores.items():
        cells[seconds.index(second), firsts.index(first)] = score
    size = 1.5 + 0.72 * len(firsts)
    figure, axes = plt.subplots(figsize=(size + 1.4, size), constrained_layout=True)
    image = axes.imshow(cells, cmap="cividis", origin="lower", aspect="equal")
    middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
    for (row, column), score in np.ndenumerate(cells):
        if firsts[column] >= seconds[row]:
            continue
        if np.isnan(score):
            axes.add_patch(patches.Rectangle((column - 0.5, row - 0.5), 1, 1, **_UNTRIED))
            continue
        colour = "white" if score <= middle else "black"
        axes.text(column, row, f"{score:.3f}", ha="center", va="center", color=colour, size=9)
    row, column = seconds.index(best[1]), firsts.index(best[0])
    axes.add_patch(patches.Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, **_BEST))
    axes.set(title=title, xlabel="θ$_1$ (lower threshold)", ylabel="θ$_2$ (upper threshold)")
    axes.set_xticks(range(len(firsts)), [f"{level:g}" for level in firsts])
    axes.set_yticks(range(len(seconds)), [f"{level:g}" for level in seconds])
    axes.spines[:].set_visible(False)
    keys = [patches.Patch(**_BEST, label="best")]
    if len(scores) < len(levels) * (len(levels) - 1) // 2:
        keys.append(patches.Patch(**_UNTRIED, label="not tried"))
    axes.legend(handles=keys, loc="lower right", frameon=False)
    figure.colorbar(image, label=metric, shrink=0.85)
    save_png(figure, path)
