"""The tables and figures of Liu et al. 2020 on one set."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.statistics import collection_statistics, details, table_1
from tf_smoothclir.evaluation.report import RULE_NAMES
from tf_smoothclir.papers.laboratory.experiment import Study
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics, test_note
from tf_smoothclir.papers.laboratory.systems import TUNED_ON
from tf_smoothclir.papers.laboratory.tables import (
    Page,
    Table,
    Written,
    figures_table,
    system_csv,
    system_table,
)
from tf_smoothclir.papers.liu2020 import figures
from tf_smoothclir.papers.liu2020 import paper_numbers as paper
from tf_smoothclir.settings.training import METRICS

_FAILED = Written([], notes=["Every run has failed."])


def _statistics(page: Page) -> Written:
    study = page.study
    counted = collection_statistics(RetrievalSet.load(source_of(study.settings.data)))
    counts = zip(("queries", "SR/Q", "documents"), table_1(counted, "")[1:])
    table = Table("Statistics", ("", study.name), (*counts, *map(tuple, details(counted))))
    return Written([table, *paper.paper_tables("table1", study.is_published)], csv=table.csv())


def _trained(
    page: Page, *, baseline: str = "", metrics: Sequence[str] = METRICS, plotted: str = ""
) -> Written:
    """A table of systems, tested against one of them, and a plot of their metrics."""
    experiment, study, systems = page.experiment, page.study, page.systems
    if not systems:
        return _FAILED
    notes, marked = [*_metric_notes(systems, study), *_setting_notes(study)], set()
    # Without the baseline, the next system must not take its place.
    if baseline in {system.name for system in systems} and len(systems) > 1:
        marked, _ = page.tested(baseline)
        notes.append(test_note(f"{experiment.column} {baseline}"))
    thresholds = {"θ": {system.name: system.thresholds for system in systems}}
    table = system_table(experiment.column, systems, metrics, marked, facts=thresholds)
    comparable = study.is_published and not paper.differences_from_paper(study.settings)
    if plotted:
        figures.plot_metric_curves(page.plot, page.title, systems, label=plotted)
    return Written(
        [table, *paper.paper_tables(experiment.name, comparable)],
        [page.plot] * bool(plotted),
        notes,
        system_csv(study.name, systems, marked),
    )


def _densities(page: Page) -> Written:
    """Draws Figure 3, and tabulates how far the grades overlap in it."""
    if not page.systems:
        return _FAILED
    figures.plot_score_densities(page.plot, f"{page.title}, training pairs", page.systems)
    overlaps = [figures.grade_overlaps(system) for system in page.systems]
    table = figures_table(
        "Overlap of the score distributions of two grades (training pairs)",
        (page.experiment.column, "θ", *overlaps[0]),
        ((s.name, s.thresholds, *of.values()) for s, of in zip(page.systems, overlaps)),
    )
    return Written([table], [page.plot], _setting_notes(page.study), table.csv())


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
    unlike = ["another set"] * (not study.is_published) + paper.differences_from_paper(settings)
    return [
        f"{training.optimizer}, batches of {training.batch_size}, epochs: {training.epochs}, of"
        f" which the best by {TUNED_ON} {select} is kept; dimension {settings.model.dim},"
        f" ε = {settings.model.epsilon:g} and {training.negatives} negatives unless varied;"
        f" documents truncated to {settings.text.max_document_tokens} tokens.",
        thresholds,
        *[f"Unlike in the paper: {', '.join(unlike)}."] * bool(unlike),
    ]


WRITERS = {
    "table1": _statistics,
    "table2": functools.partial(_trained, baseline="SOSL"),
    "table3": functools.partial(_trained, baseline="Average pooling"),
    "figure1": figures.figure1,
    "figure2": figures.figure2,
    "figure3": _densities,
    "figure4": functools.partial(_trained, baseline="0", plotted="smoothness ε"),
    "figure5": functools.partial(
        _trained, metrics=tuple(paper.FIGURE_5), plotted="sampled negatives per query"
    ),
}
