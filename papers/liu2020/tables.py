"""The tables and figures of Liu et al. 2020 on one set."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.statistics import collection_statistics
from tf_smoothclir.evaluation.report import RULE_NAMES
from tf_smoothclir.papers.laboratory.experiment import Experiment, Study
from tf_smoothclir.papers.laboratory.system_metrics import (
    SystemMetrics,
    save_differences,
    significant,
    test_note,
)
from tf_smoothclir.papers.laboratory.systems import TUNED_ON
from tf_smoothclir.papers.laboratory.tables import (
    Table,
    Written,
    figures_table,
    finished_systems,
    system_csv,
    system_table,
)
from tf_smoothclir.papers.liu2020 import loss_figures, plots
from tf_smoothclir.papers.liu2020.paper_numbers import (
    FIGURE_5,
    differences_from_paper,
    paper_tables,
)
from tf_smoothclir.settings.training import METRICS


def _statistics(experiment: Experiment, study: Study, directory: Path) -> Written:
    del directory
    counted = collection_statistics(RetrievalSet.load(source_of(study.settings.data)))
    counts = zip(("queries", "SR/Q", "documents"), counted.table_1("")[1:])
    table = Table("Statistics", ("", study.name), (*counts, *map(tuple, counted.details())))
    return Written([table, *paper_tables(experiment.name, study.is_published)], csv=table.csv())


def _trained(
    experiment: Experiment,
    study: Study,
    directory: Path,
    *,
    baseline: str = "",
    metrics: Sequence[str] = METRICS,
    plot: Callable[[Path, str, Sequence[SystemMetrics]], None] | None = None,
) -> Written:
    """A table of systems, tested against one of them, and a plot of their metrics."""
    systems = finished_systems(experiment, study)
    if not systems:
        return Written([], notes=["Every run has failed."])
    written = Written([], notes=[*_metric_notes(systems, study), *_setting_notes(study)])
    marked = set()
    # Without the baseline, the next system must not take its place.
    if baseline in {system.name for system in systems} and len(systems) > 1:
        significance = directory / f"{study.name}-significance"
        differences, _ = save_differences(systems, baseline, significance, study.seeds_note)
        marked = significant(differences)
        written.notes.append(test_note(f"{experiment.column} {baseline}"))
    thresholds = {"θ": {system.name: system.thresholds for system in systems}}
    comparable = study.is_published and not differences_from_paper(study.settings)
    written.tables = [
        system_table(experiment.column, systems, metrics, marked, facts=thresholds),
        *paper_tables(experiment.name, comparable),
    ]
    if plot is not None:
        written.plots = [directory / f"{study.name}.png"]
        plot(written.plots[0], f"{experiment.title}, {study.name}", systems)
    written.csv = system_csv(study.name, systems, marked)
    return written


def _densities(experiment: Experiment, study: Study, directory: Path) -> Written:
    """Draws Figure 3, and tabulates how far the grades overlap in it."""
    systems = finished_systems(experiment, study)
    if not systems:
        return Written([], notes=["Every run has failed."])
    plot = directory / f"{study.name}.png"
    title = f"{experiment.title}, {study.name}, training pairs"
    plots.plot_score_densities(plot, title, systems)
    overlaps = [plots.grade_overlaps(system) for system in systems]
    table = figures_table(
        "Overlap of the score distributions of two grades (training pairs)",
        (experiment.column, "θ", *overlaps[0]),
        ((s.name, s.thresholds, *of.values()) for s, of in zip(systems, overlaps)),
    )
    return Written([table], [plot], _setting_notes(study), table.csv())


def _metric_notes(systems: Sequence[SystemMetrics], study: Study) -> list[str]:
    spread = ", with the lowest and the highest seed in parentheses" * (len(study.seeds) > 1)
    rules = systems[0].cells[0].metrics()["rules"]
    queries = ", ".join(map(str, sorted(set(systems[0].queries.values()))))
    return [
        f"{study.seeds_note}{spread}; the best of a column is bold.",
        f"Test queries in a mean: {queries}.",
        *(
            f"{RULE_NAMES[name]}: {rules[name]}."
            for name in ("left_out", "gain", "relevance", "ties")
        ),
        "Candidate lists: the judged documents and sampled negatives of grade 0.",
    ]


def _setting_notes(study: Study) -> list[str]:
    settings = study.settings
    training, select = settings.training, settings.training.select_metric
    thresholds = "Thresholds: not tuned; those of --thresholds."
    if study.grids:
        counts = {name: len(values) for name, values in study.grids.items()}
        thresholds = (
            f"Thresholds: the best by {TUNED_ON} {select} of {counts['thresholds']} pairs, as far"
            f" as scores can reach them (cut points of 3PartL2: of {counts['cut_points']}), and of"
            " those beyond while the best lay at an edge; epochs:"
            f" {study.tune_epochs}, seed: {study.seeds[0]}."
        )
    unlike = ["another set"] * (not study.is_published) + differences_from_paper(settings)
    return [
        f"{training.optimizer}, batches of {training.batch_size}, epochs: {training.epochs}, of"
        f" which the best by {TUNED_ON} {select} is kept; dimension {settings.model.dim},"
        f" ε = {settings.model.epsilon:g} and {training.negatives} negatives unless varied;"
        f" documents truncated to {settings.text.max_document_tokens} tokens.",
        thresholds,
        *[f"Unlike in the paper: {', '.join(unlike)}."] * bool(unlike),
    ]


_EPSILONS = functools.partial(plots.plot_metric_curves, label="smoothness ε")
_NEGATIVES = functools.partial(plots.plot_metric_curves, label="sampled negatives per query")
WRITERS = {
    "table1": _statistics,
    "table2": functools.partial(_trained, baseline="SOSL"),
    "table3": functools.partial(_trained, baseline="Average pooling"),
    "figure1": loss_figures.figure1,
    "figure2": loss_figures.figure2,
    "figure3": _densities,
    "figure4": functools.partial(_trained, baseline="0", plot=_EPSILONS),
    "figure5": functools.partial(_trained, metrics=tuple(FIGURE_5), plot=_NEGATIVES),
}
