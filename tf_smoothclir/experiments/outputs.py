"""The files of one experiment on one set: tables as Markdown, CSV and LaTeX, and plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.statistics import PERCENTILES, CollectionStatistics, collection_statistics
from tf_smoothclir.evaluation.compare import Difference
from tf_smoothclir.evaluation.comparison_report import legend, write_comparison
from tf_smoothclir.evaluation.significance import SAMPLES
from tf_smoothclir.experiments import figures, tables
from tf_smoothclir.experiments.catalogue import Experiment
from tf_smoothclir.experiments.paper_numbers import LANGUAGES, TABLE_1, paper_results
from tf_smoothclir.experiments.plan import TUNED_ON, Study, StudySet
from tf_smoothclir.experiments.scores import (
    ALPHA,
    Result,
    differences_from_first,
    per_query_means,
    read_result,
    significant,
)
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.utils.files import make_directory, write_text

_STATISTICS = {
    "partly_relevant_mean": "SR/Q",
    "without_partly_relevant": "share of queries without SR",
    "partly_relevant_percentiles": "SR of a query, percentiles "
    + " / ".join(map(str, PERCENTILES)),
    "query_length_mean": "query length, mean (words)",
    "query_length_median": "query length, median (words)",
    "document_length_mean": "document length, mean (words)",
    "document_length_median": "document length, median (words)",
}
TEST_SEED = 13  # of the randomisation test
_VARIED = {"figure4": "smoothness ε", "figure5": "sampled negatives a query"}
_COSTS_NOTE = (
    "Time and memory of a training process that shares the machine with others like it: compare"
    " them within a table."
)
NOT_COMPARABLE = "paper, WikiCLIR: not comparable"


@dataclasses.dataclass
class Written:
    """What was written about a set, for the page.

    Attributes:
        tables: Ours.
        plots: SVG files.
        notes: What the figures depend on, a sentence each.
        csv: The figures with every digit.
    """

    tables: list[tables.Table]
    plots: list[Path] = dataclasses.field(default_factory=list)
    notes: list[str] = dataclasses.field(default_factory=list)
    csv: str = ""


def write_set(
    experiment: Experiment, one: StudySet, study: Study, directory: Path, command: str
) -> Written:
    """Writes `<set>.md`, `.csv`, `.tex` and plots of an experiment that needs sets."""
    if experiment.name == "table1":
        written = _statistics(one)
    else:
        written = _results(experiment, one, study, directory)
    # Where the set is the paper's own, its figures stand beside ours already.
    blocks = written.tables + ([] if one.published else paper_blocks(experiment))
    path = directory / one.name
    heading = f"# {experiment.title}, {one.name}\n\n{experiment.claim}\n\n"
    parts = [block.markdown() for block in blocks]
    parts += [f"![{experiment.title}]({plot.name})\n" for plot in written.plots]
    parts += ["".join(f"* {note}\n" for note in written.notes), f"```\n{command}\n```\n"]
    _write(path, "md", heading + "\n".join(part for part in parts if part))
    _write(path, "csv", written.csv)
    _write(path, "tex", "\n".join(block.latex() for block in blocks))
    return written


def paper_blocks(experiment: Experiment) -> list[tables.Table]:
    """Returns the paper's own table; none where the paper has no numbers."""
    if experiment.name == "table1":
        rows = tuple((LANGUAGES[code], *counts) for code, counts in TABLE_1.items())
        columns = ("documents", "queries", "SR/Q", "number of documents")
        return [tables.Table(NOT_COMPARABLE, columns, rows)]
    named = {LANGUAGES[code]: of for code, of in paper_results(experiment.name).items()}
    if not named:
        return []
    return [tables.paper_table(NOT_COMPARABLE, experiment.first_column, named)]


def _write(path: Path, kind: str, text: str) -> None:
    write_text(path.with_name(f"{path.name}.{kind}"), text)


def _statistics(one: StudySet) -> Written:
    columns = ("", one.name)
    rows = _statistics_rows(collection_statistics(source_of(one.settings.data)))
    if one.published:
        queries, partly_relevant, documents = TABLE_1[one.published]
        theirs = {"queries": queries, "SR/Q": partly_relevant, "documents": documents}
        columns += (f"paper, {LANGUAGES[one.published]}",)
        rows = [(*row, theirs.get(row[0], "")) for row in rows]
    table = tables.Table("Statistics", columns, tuple(rows))
    return Written([table], csv=tables.plain_csv(table))


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
    return rows[1:]  # the name is the heading


def _results(experiment: Experiment, one: StudySet, study: Study, directory: Path) -> Written:
    found = [read_result(s.name, study.cells(one, s)) for s in experiment.systems]
    results = [result for result in found if result is not None]
    if not results:
        return Written([], notes=["Every run has failed."])
    written = Written([], notes=_setting_notes(results, one.settings, study))
    if experiment.name == "figure3":
        _densities(written, experiment, one, results, directory)
        return written
    rows, column = [], experiment.first_column
    title, path = f"{experiment.title}, {one.name}", directory / one.name
    written.notes = _figure_notes(results, study) + written.notes
    # A baseline that is missing would be replaced by another one silently.
    if experiment.compared and found[0] is not None and len(results) > 1:
        rows = _compare(results, experiment.metrics, directory / f"{one.name}-significance", study)
        written.notes.append(_test_note(f"{column} {results[0].name}"))
    marked, paper = significant(rows), paper_results(experiment.name)
    written.tables.append(
        tables.result_table(
            "Test queries",
            column,
            results,
            marked,
            paper.get(one.published),
            metrics=experiment.metrics,
            costs=experiment.costs,
        )
    )
    if experiment.name in _VARIED:
        label = _VARIED[experiment.name]
        written.plots = _svg(figures.curves(path, title, label, results))
    if experiment.costs:
        written.notes.append(_COSTS_NOTE)
        if rows:
            written.plots = _svg(figures.gains(path, title, results[0].name, rows))
    written.csv = tables.result_csv(one.name, results, marked, paper, one.published)
    return written


def _compare(
    results: Sequence[Result], metrics: Sequence[str], directory: Path, study: Study
) -> list[Difference]:
    """Tests each system against the first, and writes all figures of the tests."""
    systems, best_grade = per_query_means(results, metrics)
    rows = differences_from_first(systems, TEST_SEED, metrics)
    baseline = results[0].name
    rules = legend(
        rows, systems, baseline=baseline, best_grade=best_grade, seed=TEST_SEED, samples=SAMPLES
    )
    rules["seeds"] = f"scores of a query are means over the seeds {_listed(study.seeds)}"
    write_comparison(make_directory(directory, "--output_dir"), rows, systems, baseline, rules)
    return rows


def _densities(written: Written, experiment, one: StudySet, results, directory: Path) -> None:
    """Draws Figure 3, and tells in numbers what it shows."""
    title = f"{experiment.title}, {one.name}, training pairs"
    written.plots = _svg(figures.densities(directory / one.name, title, results))
    shared = [figures.overlaps(result) for result in results]
    table = tables.Table(
        "Share of the score distributions that two grades have in common (training pairs)",
        (experiment.first_column, "θ", *shared[0]),
        tuple(
            (result.name, tables.threshold_text(result), *(f"{value:.3f}" for value in of.values()))
            for result, of in zip(results, shared)
        ),
    )
    written.tables.append(table)
    written.csv = tables.plain_csv(table)


def _svg(files: Sequence[Path]) -> list[Path]:
    return [file for file in files if file.suffix == ".svg"]


def _figure_notes(results: Sequence[Result], study: Study) -> list[str]:
    spread = " and, in parentheses, the lowest and the highest of them" * (len(study.seeds) > 1)
    rules = results[0].cells[0].metrics()["rules"]
    return [
        f"Mean over the seeds {_listed(study.seeds)}{spread}; the best mean of a column is bold.",
        f"Test queries in a mean: {_listed(sorted(set(results[0].queries.values())))}.",
        *(f"{name}: {rules[name]}." for name in ("left_out", "gain", "relevance", "ties")),
        "Candidate lists: the judged documents and the negatives, sampled ones of grade 0.",
    ]


def _setting_notes(results: Sequence[Result], settings: RunSettings, study: Study) -> list[str]:
    training, select = settings.training, settings.training.select_metric
    notes = [
        f"{training.optimizer}, batches of {training.batch_size}, epochs: {training.epochs}, of"
        f" which the best by {TUNED_ON} {select} is kept; dimension {settings.model.dim},"
        f" ε = {settings.model.epsilon:g} and {training.negatives} negatives unless varied;"
        f" documents cut at {settings.text.max_document_tokens} tokens."
    ]
    if study.grids:
        counts = {name: len(values) for name, values in study.grids.items()}
        notes.append(
            f"Thresholds: the best by {TUNED_ON} {select} of {counts['thresholds']} pairs (cut"
            f" points of 3PartL2: of {counts['cut_points']}), epochs: {study.tune_epochs}, seed"
            f" {study.seeds[0]}."
        )
    else:
        notes.append("Thresholds: not tuned, but those of --thresholds.")
    partial = [r.name for r in results if len(r.cells) < len(study.seeds)]
    return notes + [f"Not every seed is there: {_listed(partial)}."] * bool(partial)


def _test_note(baseline: str) -> str:
    return (
        f"{tables.MARK}: differs from {baseline}; paired randomisation test over queries, scores"
        f" averaged over seeds, {SAMPLES:,} patterns, seed {TEST_SEED}, Holm-corrected over the"
        f" systems within a metric, p < {ALPHA:g}. Intervals and effect sizes: <set>-significance/."
    )


def _listed(values: Sequence) -> str:
    return ", ".join(map(str, values))
