"""Plots of the game between encoders and a discriminator, over the epochs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.papers.li2018.discriminator import SOURCES
from tf_smoothclir.papers.li2018.systems import NO_ADVERSARY, OURS

_DRAWN = (OURS, NO_ADVERSARY, "k = 5", "adversarial weight 1")
_ENTRIES = {
    "matching_loss": "matching of queries",
    "monolingual_loss": "matching of translations",
    "translation_loss": "translation",
    "log_likelihood": "log-likelihood of the sources",
    "accuracy": "accuracy of the discriminator",
    "source_probe": "source probe",
}
_LOOKS = (("o", "-"), ("s", "--"), ("^", "-."), ("v", ":"))
_CHANCE = {"log_likelihood": -np.log(3), "accuracy": 1 / 3, "source_probe": 1 / 3}


def plot_game(path: Path, title: str, systems: Mapping[str, SystemMetrics]) -> None:
    """Draws all losses, the discriminator's accuracy and the source probe of each epoch."""
    figure, panels = plt.subplots(2, 3, figsize=(12, 6.5), sharex=True, constrained_layout=True)
    drawn = [name for name in _DRAWN if name in systems]
    for panel, (entry, label) in zip(panels.flat, _ENTRIES.items()):
        for name, colour, (marker, style) in zip(drawn, COLOURS, _LOOKS):
            curve = _curve(systems[name], entry)
            epochs = np.arange(1, len(curve) + 1)
            look = {"color": colour, "marker": marker, "linestyle": style, "markersize": 4}
            panel.plot(epochs, curve, label=name, **look)
        if entry in _CHANCE:
            panel.axhline(_CHANCE[entry], color="grey", linewidth=1, zorder=0)
        panel.set(title=label)
        panel.grid(alpha=0.3)
    for panel in panels[1]:
        panel.set_xlabel("epoch")
        panel.xaxis.get_major_locator().set_params(integer=True)
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(f"{title} (grey: all sources alike)")
    save_png(figure, path, dpi=150)


def _curve(system: SystemMetrics, entry: str) -> np.ndarray:
    """The mean over the seeds, `[epochs]`."""
    names = [f"accuracy_{source}" for source in SOURCES] if entry == "accuracy" else [entry]
    curves = [
        [np.mean([record.get(name, np.nan) for name in names]) for record in history]
        for history in system.histories
    ]
    return np.mean(curves, axis=0)
