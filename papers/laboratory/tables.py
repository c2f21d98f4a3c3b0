"""Tables of experiments, as Markdown, LaTeX and CSV, and the page of an experiment."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from tf_smoothclir.evaluation.compare import SAMPLES, compare
from tf_smoothclir.evaluation.comparison_report import Comparison, legend
from tf_smoothclir.evaluation.trec import RunMetrics
from tf_smoothclir.papers.laboratory.code_version import code_note
from tf_smoothclir.papers.laboratory.experiment import Experiment, Study
from tf_smoothclir.papers.laboratory.system_metrics import (
    TEST_SEED,
    SystemMetrics,
    per_query_means,
    read_system_metrics,
    significant,
)
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage.files import write_text
from tf_smoothclir.utils.printing import csv_table, markdown_table

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "θ": r"$\theta$",
    "ε": r"$\varepsilon$",
    "†": r"\textsuperscript{$\dagger$}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}
_CSV_COLUMNS = ("set", "system", "thresholds", "metric", "mean", "lowest_seed", "highest_seed")
_CSV_COLUMNS += ("seeds", "queries", "marked")


@dataclasses.dataclass(frozen=True)
class Value:
    """A metric in a table, over the seeds."""

    of_seeds: np.ndarray
    best: bool = False  # whether the mean is the best of its column
    differs: bool = False  # whether the difference from the baseline is significant

    def __str__(self) -> str:
        """A text such as "0.853 (0.850 to 0.856) †"; one seed has no spread."""
        low, high, text = self.of_seeds.min(), self.of_seeds.max(), f"{self.of_seeds.mean():.3f}"
        if low != high:
            text += f" ({low:.3f} to {high:.3f})"
        return text + " †" * self.differs


@dataclasses.dataclass(frozen=True)
class Table:
    """A table."""

    caption: str  # what it shows
    columns: tuple[str, ...]  # their names
    rows: tuple[tuple[object, ...], ...]  # each a tuple with a text or a `Value` for every column

    def markdown(self) -> str:
        """The caption and a Markdown table; the best values are bold."""
        rows = [[_bold(cell, "**{}**") for cell in row] for row in self.rows]
        return f"{self.caption}\n\n{markdown_table(self.columns, rows)}"

    def latex(self) -> str:
        """A LaTeX tabular for the package booktabs; the best values are bold."""
        rows = [[_bold(cell, r"\textbf{{{}}}", latex_escape) for cell in row] for row in self.rows]
        kinds = [any(isinstance(cell, Value) for cell in column) for column in zip(*self.rows)]
        columns = "".join("r" if is_number else "l" for is_number in kinds)
        header, *lines = (
            " & ".join(cells) + r" \\" for cells in [map(latex_escape, self.columns), *rows]
        )
        parts = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", header, r"\midrule", *lines]
        return "\n".join([f"% {self.caption}", *parts, r"\bottomrule", r"\end{tabular}"]) + "\n"

    def csv(self) -> str:
        """A table of texts and numbers as CSV."""
        return csv_table(self.columns, self.rows)


def figures_table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[str | float]]
) -> Table:
    """A table of texts, and of figures with three decimals, such as a paper prints."""
    texts = (tuple(of if isinstance(of, str) else f"{of:.3f}" for of in row) for row in rows)
    return Table(caption, tuple(columns), tuple(texts))


def latex_escape(text: object) -> str:
    """Escapes a text so that LaTeX shows it literally."""
    return re.sub(r"[\\~^&%$#_{}θε†]", lambda match: _LATEX[match[0]], str(text))


def _bold(cell: object, pattern: str, escape=str) -> str:
    text = escape(f"{cell:,}" if isinstance(cell, int) else cell)
    return pattern.format(text) if isinstance(cell, Value) and cell.best else text


def system_table(
    column: str,
    systems: Sequence[SystemMetrics],
    metrics: Sequence[str],
    marked: Collection[tuple[str, str]] = (),
    *,
    facts: Mapping[str, Mapping[str, str]] | None = None,
    rivals: Sequence[SystemMetrics] | None = None,
) -> Table:
    """A row for each system: the mean of each metric, empty for one it lacks, the best in bold."""
    # `marked`: (system, metric). `facts`: heading of a further column -> system -> text. `rivals`:
    # the best of them is bold; None for all.
    rivals, facts = systems if rivals is None else rivals, facts or {}
    best = {
        m: max((s.values[m].mean() for s in rivals if m in s.values), default=0) for m in metrics
    }

    def value(system: SystemMetrics, metric: str) -> Value | str:
        if metric not in system.values:
            return ""
        is_best = system in rivals and system.values[metric].mean() == best[metric]
        return Value(system.values[metric], is_best, (system.name, metric) in marked)

    def row(system: SystemMetrics) -> tuple[object, ...]:
        values = (value(system, metric) for metric in metrics)
        return (system.name, *values, *(of.get(system.name, "") for of in facts.values()))

    return Table("Test queries", (column, *metrics, *facts), tuple(map(row, systems)))


def system_csv(
    set_name: str, systems: Sequence[SystemMetrics], marked: Collection[tuple[str, str]] = ()
) -> str:
    """A CSV line for each system and metric, unrounded."""
    lines = []
    for system in systems:
        thresholds = system.thresholds if system.cells else ""
        seeds = " ".join(map(str, system.seeds))
        for metric, of in system.values.items():
            spread = of.mean(), of.min(), of.max(), seeds, system.queries[metric]
            differs = "yes" if (system.name, metric) in marked else "no"
            lines.append((set_name, system.name, thresholds, metric, *spread, differs))
    return csv_table(_CSV_COLUMNS, lines)


@dataclasses.dataclass
class Written:
    """What an experiment shows of a set."""

    tables: list[Table]
    plots: list[Path] = dataclasses.field(default_factory=list)  # PNG files
    # the conditions of the measurement, one sentence or two each
    notes: list[str] = dataclasses.field(default_factory=list)
    csv: str = ""  # the unrounded values


@dataclasses.dataclass(frozen=True)
class Page:
    """The page of an experiment; a function of each makes what is `Written` on it."""

    experiment: Experiment
    study: Study | None  # None for an experiment that needs no set
    directory: Path

    @property
    def name(self) -> str:
        """What its files are called."""
        return self.experiment.name if self.study is None else self.study.name

    @property
    def title(self) -> str:
        """The experiment and the set."""
        return self.experiment.title + (f", {self.study.name}" if self.study else "")

    @property
    def plot(self) -> Path:
        """The file of its plot."""
        return self.directory / f"{self.name}.png"

    @functools.cached_property
    def systems(self) -> list[SystemMetrics]:
        """The figures of the systems that have finished with some seed, in their order."""
        rows = self.experiment.rows
        read = (read_system_metrics(row.name, row.cells(self.study)) for row in rows)
        return [system for system in read if system is not None]

    def tested(self, baseline: str) -> tuple[set[tuple[str, str]], dict[str, RunMetrics]]:
        """Each (system, metric) with a mark after tests against a system, and `per_query_means`."""
        means, best_grade = per_query_means(self.systems)
        found = compare(means, baseline=baseline, seed=TEST_SEED, metrics=METRICS)
        options = {"best_grade": best_grade, "seed": TEST_SEED, "samples": SAMPLES}
        rules = legend(found, means, baseline=baseline, **options)
        seeds = self.study.seeds_note
        rules["seeds"] = f"scores of a query: {seeds[0].lower()}{seeds[1:]}"
        directory = self.directory / f"{self.name}-significance"
        Comparison(found, baseline, tuple(means), rules).save(directory)
        return significant(found), means

    def write(self, written: Written, command: str) -> None:
        """Writes `<set>.md` and `.csv`, and the tables as `.tex`."""
        notes, rows = [*written.notes], self.experiment.rows if self.study else ()
        if unfinished := [r.name for r in rows if not all(c.finished for c in r.cells(self.study))]:
            notes.append(f"Not finished with all seeds: {'; '.join(unfinished)}.")
        parts = [f"# {self.title}\n", f"{self.experiment.claim}\n"]
        parts += [table.markdown() for table in written.tables]
        parts += [f"![{self.experiment.title}]({plot.name})\n" for plot in written.plots]
        parts += ["".join(f"* {note}\n" for note in (*notes, code_note()))]
        texts = {"md": "\n".join([*parts, f"```\n{command}\n```\n"]), "csv": written.csv}
        if written.tables:
            texts["tex"] = "\n".join(table.latex() for table in written.tables)
        for kind, text in texts.items():
            write_text(self.directory / f"{self.name}.{kind}", text)
