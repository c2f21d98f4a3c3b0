"""The files of an experiment on one set: tables as Markdown, CSV and LaTeX, and a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.statistics import PERCENTILES, CollectionStatistics, collection_statistics
from tf_smoothclir.evaluation.report import RULE_NAMES
from tf_smoothclir.evaluation.significance import SAMPLES
from tf_smoothclir.papers.laboratory import curve_plots, system_plots, tables
from tf_smoothclir.papers.laboratory.catalogue import Experiment
from tf_smoothclir.papers.laboratory.code_version import code_note
from tf_smoothclir.papers.laboratory.plan import TUNED_ON, Study, StudySet
from tf_smoothclir.papers.laboratory.system_metrics import (
    ALPHA,
    TEST_SEED,
    SystemMetrics,
    read_system_metrics,
    save_differences,
    significant,
)
from tf_smoothclir.papers.laboratory.systems import NEGATIVES
from tf_smoothclir.papers.li2018 import tables as li2018
from tf_smoothclir.papers.liu2020 import generalization
from tf_smoothclir.papers.liu2020.paper_numbers import FIGURE_5, LANGUAGES, TABLE_1, paper_values
from tf_smoothclir.papers.yu2020 import figure1 as yu2020_figure1
from tf_smoothclir.papers.yu2020 import numbers as yu2020_numbers
from tf_smoothclir.papers.yu2020 import outputs as yu2020
from tf_smoothclir.storage.files import write_text

_STATISTICS = {
    "partly_relevant_mean": "SR/Q",
    "without_partly_relevant": "share of queries without SR",
    "partly_relevant_percentiles": "SR per query, percentiles " + " / ".join(map(str, PERCENTILES)),
    "query_length_mean": "query length, mean (words)",
    "query_length_median": "query length, median (words)",
    "document_length_mean": "document length, mean (words)",
    "document_length_median": "document length, median (words)",
}
_VARIED = {"figure4": "smoothness ε", "figure5": "sampled negatives per query"}
_CURVES = {
    "table3": curve_plots.plot_learning,
    "gradients": curve_plots.plot_gradients,
    "related": curve_plots.plot_related,
    "queries": curve_plots.plot_queries,
}
_COSTS_NOTE = (
    "Time and memory are those of a training process that shares the machine with others like it:"
    " compare them within a table only."
)
_YU2020 = {
    "yu2020_table1": yu2020.write_table1,
    "yu2020_table2": yu2020.write_table2,
    "yu2020_table3": yu2020.write_table3,
    "yu2020_figure1": yu2020_figure1.write_figure1,
}
NOT_COMPARABLE = "paper, WikiCLIR: not comparable"


def write_set(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path, command: str
) -> None:
    """Writes `<set>.md`, `.csv`, `.tex` and `.png` of an experiment that needs sets."""
    if experiment.name in li2018.WRITERS:
        writer = li2018.WRITERS[experiment.name]
        written = writer(experiment, study_set, study, directory)
    elif experiment.name == "table1":
        written = _statistics(study_set)
    elif experiment.name in _YU2020:
        written = _YU2020[experiment.name](experiment, study_set, study, directory)
    else:
        written = _trained(experiment, study_set, study, directory)
    written.notes += _unfinished(experiment, study_set, study)
    # If they are comparable, the paper's numbers are in our tables already.
    compares = study_set.published if experiment.name == "table1" else study_set.comparable
    written.tables += [] if compares else paper_blocks(experiment)
    write_page(directory / study_set.name, experiment, written, command, study_set.name)


def write_page(
    path: Path, experiment: Experiment, written: tables.Written, command: str, set_name: str = ""
) -> None:
    """Writes `.md` and `.csv`, and tables as `.tex`."""
    heading = ", ".join(filter(None, [experiment.title, set_name]))
    notes = [*written.notes, code_note()]
    parts = [f"# {heading}\n", f"{experiment.claim}\n"]
    parts += [block.markdown() for block in written.tables]
    parts += [f"![{experiment.title}]({plot.name})\n" for plot in written.plots]
    parts += ["".join(f"* {note}\n" for note in notes), f"```\n{command}\n```\n"]
    _write(path, "md", "\n".join(parts))
    _write(path, "csv", written.csv)
    if written.tables:
        _write(path, "tex", "\n".join(block.latex() for block in written.tables))


def _unfinished(experiment: Experiment, study_set: StudySet, study: Study) -> list[str]:
    """Notes that name the rows whose runs failed or are still to come, and those left out."""
    rows = {row.name: study.matching_cells(study_set, row) for row in experiment.matching}
    rows |= {row.name: study.cells(study_set, row) for row in study.trained_systems(experiment)}
    found = [name for name, cells in rows.items() if not all(cell.finished for cell in cells)]
    notes = [f"Not finished with all seeds: {'; '.join(found)}."] * bool(found)
    if experiment.left_out:
        why = "because the set has no more than they ask for, or another row has the same runs"
        notes.append(f"Left out, {why}: {'; '.join(experiment.left_out)}.")
    return notes


def paper_blocks(experiment: Experiment) -> list[tables.Table]:
    """The paper's own table, or nothing if the paper gives no numbers."""
    if experiment.name == "table1":
        rows = tuple((LANGUAGES[code], *counts) for code, counts in TABLE_1.items())
        columns = ("documents", "queries", "SR/Q", "number of documents")
        return [tables.Table(NOT_COMPARABLE, columns, rows)]
    if experiment.name in _YU2020:
        return yu2020_numbers.paper_tables(experiment.name)
    if experiment.name == "figure5":
        values = zip(NEGATIVES, *FIGURE_5.values())
        rows = tuple((str(number), *map("{:.3f}".format, row)) for number, *row in values)
        return [tables.Table(NOT_COMPARABLE, (experiment.first_column, *FIGURE_5), rows)]
    named = {LANGUAGES[code]: of for code, of in paper_values(experiment.name).items()}
    if not named:
        return []
    return [tables.paper_table(NOT_COMPARABLE, experiment.first_column, named)]


def _write(path: Path, kind: str, text: str) -> None:
    write_text(path.with_name(f"{path.name}.{kind}"), text)


def _statistics(study_set: StudySet) -> tables.Written:
    columns = ("", study_set.name)
    loaded = RetrievalSet.load(source_of(study_set.settings.data))
    rows = _statistics_rows(collection_statistics(loaded))
    if study_set.published:
        queries, partly_relevant, documents = TABLE_1[study_set.published]
        theirs = {"queries": queries, "SR/Q": partly_relevant, "documents": documents}
        columns += (f"paper, {LANGUAGES[study_set.published]}",)
        rows = [(*row, theirs.get(row[0], "")) for row in rows]
    table = tables.Table("Statistics", columns, tuple(rows))
    return tables.Written([table], csv=tables.plain_csv(table))


def _statistics_rows(found: CollectionStatistics) -> list[tuple]:
    rows = []
    for name, value in found.to_dict().items():
        text = _STATISTICS.get(name, name.replace("_", " "))
        if isinstance(value, float):
            value = f"{value:.3f}"
        elif isinstance(value, (tuple, list)):
            value = " / ".join(map(str, value))
        elif isinstance(value, dict):
            value = ", ".join(f"{split} {count}" for split, count in value.items())
        rows.append((text, "none" if value is None else value))
    return rows[1:]  # the first one is the name, which the heading has


def _trained(
    experiment: Experiment, study_set: StudySet, study: Study, directory: Path
) -> tables.Written:
    found = [
        read_system_metrics(s.name, study.cells(study_set, s), s.part) for s in experiment.systems
    ]
    systems = [system for system in found if system is not None]
    if not systems:
        return tables.Written([], notes=["Every run has failed."] * bool(found))
    title, plot = f"{experiment.title}, {study_set.name}", directory / f"{study_set.name}.png"
    column, notes = experiment.first_column, _setting_notes(systems, study_set, study)
    if experiment.name == "figure3":
        return _densities(plot, title, column, systems, notes)
    if experiment.name == "gap":
        return _gaps(plot, title, column, systems, notes)
    written = tables.Written([], notes=[*_metric_notes(systems, study), *notes])
    differences = []
    # Without the baseline, the next system would silently take its place.
    if experiment.compared and found[0] is not None and len(systems) > 1:
        significance = directory / f"{study_set.name}-significance"
        differences, _ = save_differences(
            systems, experiment.metrics, systems[0].name, significance, study.scores_note
        )
        written.notes.append(_test_note(f"{column} {systems[0].name}"))
    marked, paper = significant(differences), paper_values(experiment.name)
    written.tables.append(
        tables.system_table(
            "Test queries",
            column,
            systems,
            marked,
            paper.get(study_set.comparable),
            metrics=experiment.metrics,
            costs=experiment.costs,
        )
    )
    if experiment.name in _VARIED:
        system_plots.plot_metric_curves(plot, title, _VARIED[experiment.name], systems)
        written.plots.append(plot)
    if experiment.name in _CURVES:
        _CURVES[experiment.name](plot, title, systems)
        written.plots.append(plot)
    if experiment.costs:
        written.notes.append(_COSTS_NOTE)
        if differences:
            system_plots.plot_gains(plot, title, systems[0].name, differences)
            written.plots.append(plot)
    written.csv = tables.system_csv(study_set.name, systems, marked, paper, study_set.comparable)
    return written


def _densities(plot: Path, title: str, column: str, systems, notes: list[str]) -> tables.Written:
    """Draws Figure 3, and tabulates how far the grades overlap in it."""
    system_plots.plot_score_densities(plot, f"{title}, training pairs", systems)
    overlaps = [system_plots.grade_overlaps(system) for system in systems]
    table = tables.Table(
        "Overlap of the score distributions of two grades (training pairs)",
        (column, "θ", *overlaps[0]),
        tuple(
            (system.name, tables.threshold_text(system), *(f"{value:.3f}" for value in of.values()))
            for system, of in zip(systems, overlaps)
        ),
    )
    return tables.Written([table], [plot], notes, tables.plain_csv(table))


def _gaps(plot: Path, title: str, column: str, systems, notes: list[str]) -> tables.Written:
    """Draws and tabulates the gap between training and test loss."""
    gaps = [generalization.gap_of(system) for system in systems]
    generalization.plot_gaps(plot, title, gaps)
    table = generalization.gap_table(column, gaps)
    return tables.Written([table], [plot], notes, tables.plain_csv(table))


def _metric_notes(systems: Sequence[SystemMetrics], study: Study) -> list[str]:
    spread = ", with the lowest and the highest seed in parentheses" * (len(study.seeds) > 1)
    rules = systems[0].cells[0].metrics().rules
    best = "value" if len(study.seeds) == 1 else "mean"
    return [
        f"{study.seeds_note}{spread}; the best {best} of a column is bold.",
        f"Test queries in a mean: {_listed(sorted(set(systems[0].queries.values())))}.",
        *(
            f"{RULE_NAMES[name]}: {rules[name]}."
            for name in ("left_out", "gain", "relevance", "ties")
        ),
        "Candidate lists: the judged documents and sampled negatives of grade 0.",
    ]


def _setting_notes(
    systems: Sequence[SystemMetrics], study_set: StudySet, study: Study
) -> list[str]:
    settings = study_set.settings
    training, select = settings.training, settings.training.select_metric
    notes = [
        f"{training.optimizer}, batches of {training.batch_size}, epochs: {training.epochs}, of"
        f" which the best by {TUNED_ON} {select} is kept; dimension {settings.model.dim},"
        f" ε = {settings.model.epsilon:g} and {training.negatives} negatives unless varied;"
        f" documents truncated to {settings.text.max_document_tokens} tokens."
    ]
    if study.grids:
        counts = {name: len(values) for name, values in study.grids.items()}
        notes.append(
            f"Thresholds: the best by {TUNED_ON} {select} of {counts['thresholds']} pairs, as far"
            f" as scores can reach them (cut points of 3PartL2: of {counts['cut_points']}), and of"
            " those beyond while the best lay at an edge; epochs:"
            f" {study.tune_epochs}, seed: {study.seeds[0]}."
        )
    else:
        notes.append("Thresholds: not tuned; those of --thresholds.")
    if study_set.differences:
        set_too = "" if study_set.published else "another set, "
        notes.append(f"Unlike in the paper: {set_too}{_listed(study_set.differences)}.")
    elif not study_set.published:
        notes.append("Unlike in the paper: another set.")
    partial = [system.name for system in systems if len(system.cells) < len(study.seeds)]
    return notes + [f"Some seeds have failed: {_listed(partial)}."] * bool(partial)


def _test_note(baseline: str) -> str:
    return (
        f"{tables.MARK}: differs from {baseline}; paired randomisation test over queries, scores"
        f" averaged over seeds, {SAMPLES:,} patterns, seed {TEST_SEED}, Holm-corrected over the"
        f" systems of a metric, p < {ALPHA:g}. Intervals and effect sizes: <set>-significance/."
    )


def _listed(values: Sequence) -> str:
    return ", ".join(map(str, values))
