"""Plots of training runs: learning curves, gradient norms, metrics against numbers of judgments."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.plots import COLOURS, plt, save_png
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.papers.laboratory.systems import CLIP_NORMS
from tf_smoothclir.training.checkpoints import lower_edge

_STYLES = ("-", ":", "--")
_LEARNED_METRIC = "NDCG@5"
_LOOKS = (("o", "-"), ("s", "--"), ("^", "-."), ("v", ":"))


def plot_gradients(path: Path, title: str, systems: Sequence[SystemMetrics]) -> None:
    """Draws the distribution of the gradient norms of all steps, and the loss of each epoch."""
    figure, (norms, losses) = plt.subplots(1, 2, figsize=(9.5, 4.6), constrained_layout=True)
    for index, system in enumerate(systems):
        look = {"color": COLOURS[index // len(_STYLES) % len(COLOURS)]}
        look["linestyle"] = _STYLES[index % len(_STYLES)]
        histories = system.histories
        records = [record for history in histories for record in history]
        counts = sum((Counter(r["gradient_norm_counts"]) for r in records), Counter())
        bins = range(min(map(int, counts)), max(map(int, counts)) + 1)
        shares = np.array([counts[str(number)] for number in bins]) / sum(counts.values())
        edges = [lower_edge(number) for number in (*bins, bins[-1] + 1)]
        norms.stairs(shares, edges, linewidth=1.8, **look)
        curve = np.mean([[record["loss"] for record in h] for h in histories], axis=0)
        losses.plot(np.arange(1, len(curve) + 1), curve, linewidth=1.8, label=system.name, **look)
    for limit in filter(None, CLIP_NORMS.values()):
        norms.axvline(limit, color="grey", linewidth=1, zorder=0)
    norms.set(xscale="log", xlabel="norm of the gradient before clipping", ylabel="share of steps")
    losses.set(xlabel="epoch", ylabel="training loss (SOSL)")
    for panel in (norms, losses):
        panel.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=3)
    figure.suptitle(title)
    save_png(figure, path, dpi=150)


def plot_learning(path: Path, title: str, systems: Sequence[SystemMetrics]) -> None:
    """Draws loss and validation metric of each epoch; a ring marks the best epoch."""
    figure, (losses, validation) = plt.subplots(
        1, 2, figsize=(9.5, 4.2), sharex=True, constrained_layout=True
    )
    lines = {}
    for system, colour, (_, style) in zip(systems, COLOURS, _LOOKS):
        look = {"color": colour, "linestyle": style, "linewidth": 1.8}
        for history in system.histories:
            epochs = [record["epoch"] for record in history]
            values = [record["validation"][_LEARNED_METRIC] for record in history]
            losses.plot(epochs, [record["loss"] for record in history], **look)
            (lines[system.name],) = validation.plot(epochs, values, **look)
            best = int(np.argmax(values))
            validation.plot(epochs[best], values[best], "o", color=colour, fillstyle="none")
    losses.set(xlabel="epoch", ylabel="training loss")
    validation.set(xlabel="epoch", ylabel=f"validation {_LEARNED_METRIC}")
    for panel in (losses, validation):
        panel.xaxis.get_major_locator().set_params(integer=True)
        panel.grid(alpha=0.3)
    figure.legend(lines.values(), lines.keys(), loc="outside lower center", ncols=4)
    figure.suptitle(title)
    save_png(figure, path, dpi=150)


def _plot_metrics(
    path: Path, title: str, systems: Sequence[SystemMetrics], metrics: Sequence[str], label: str
) -> None:
    """Draws a panel for each metric and a curve for each kind of system, named "kind, place"."""
    places = list(dict.fromkeys(system.name.rsplit(", ")[1] for system in systems))
    kinds = list(dict.fromkeys(system.name.rsplit(", ")[0] for system in systems))
    figure, panels = plt.subplots(
        1, len(metrics), figsize=(11, 3.8), sharex=True, constrained_layout=True
    )
    for panel, metric in zip(panels, metrics):
        for kind, colour, (marker, style) in zip(kinds, COLOURS, _LOOKS):
            of_kind = [s for s in systems if s.name.rsplit(", ")[0] == kind]
            at = [places.index(system.name.rsplit(", ")[1]) for system in of_kind]
            values = [system.values[metric].mean() for system in of_kind]
            panel.plot(at, values, color=colour, marker=marker, linestyle=style, label=kind)
        panel.set(title=metric, xlabel=label, xticks=range(len(places)), xticklabels=places)
        panel.grid(alpha=0.3)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    figure.suptitle(title)
    save_png(figure, path, dpi=150)


plot_related = functools.partial(
    _plot_metrics, metrics=("P_mr@1", "P_r@5", "NDCG@5", "MAP"), label="SR/Q"
)
plot_queries = functools.partial(
    _plot_metrics, metrics=("P_mr@1", "NDCG@5", "full/MRR@10"), label="training queries"
)
