"""Tables of experiments, as Markdown, LaTeX and CSV, and the page of an experiment."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path

from tf_smoothclir.papers.laboratory.code_version import code_note
from tf_smoothclir.papers.laboratory.experiment import Experiment, Study
from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics, read_system_metrics
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
    """A metric in a table."""

    mean: float  # mean over the seeds
    low: float  # value of the lowest seed
    high: float  # value of the highest seed
    best: bool = False  # whether the mean is the best of its column
    differs: bool = False  # whether the difference from the baseline is significant

    def __str__(self) -> str:
        """A text such as "0.853 (0.850 to 0.856) †"; one seed has no spread."""
        text = f"{self.mean:.3f}"
        if self.low != self.high:
            text += f" ({self.low:.3f} to {self.high:.3f})"
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
    rows = []
    for system in systems:
        values = [""] * len(metrics)
        for place, metric in enumerate(metrics):
            if (of := system.values.get(metric)) is not None:
                is_best = system in rivals and of.mean() == best[metric]
                differs = (system.name, metric) in marked
                values[place] = Value(of.mean(), of.min(), of.max(), is_best, differs)
        rows.append((system.name, *values, *(of.get(system.name, "") for of in facts.values())))
    return Table("Test queries", (column, *metrics, *facts), tuple(rows))


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


# From an experiment, a set (None for one that needs none) and a directory for plots.
Writer = Callable[[Experiment, Study | None, Path], Written]


def finished_systems(experiment: Experiment, study: Study) -> list[SystemMetrics]:
    """The figures of the systems that have finished with some seed, in their order."""
    read = (read_system_metrics(row.name, row.cells(study)) for row in experiment.rows)
    return [system for system in read if system is not None]


def write_page(
    write: Writer, experiment: Experiment, study: Study | None, directory: Path, command: str
) -> None:
    """Writes `<set>.md`, `.csv` and `.png`, and the tables as `.tex`."""
    written = write(experiment, study, directory)
    notes, heading, name = [*written.notes], experiment.title, experiment.name
    if study is not None:
        rows = experiment.rows
        unfinished = [row.name for row in rows if not all(c.finished for c in row.cells(study))]
        notes += [f"Not finished with all seeds: {'; '.join(unfinished)}."] * bool(unfinished)
        heading, name = f"{heading}, {study.name}", study.name
    parts = [f"# {heading}\n", f"{experiment.claim}\n"]
    parts += [table.markdown() for table in written.tables]
    parts += [f"![{experiment.title}]({plot.name})\n" for plot in written.plots]
    parts += ["".join(f"* {note}\n" for note in (*notes, code_note()))]
    texts = {"md": "\n".join([*parts, f"```\n{command}\n```\n"]), "csv": written.csv}
    if written.tables:
        texts["tex"] = "\n".join(table.latex() for table in written.tables)
    for kind, text in texts.items():
        write_text(directory / f"{name}.{kind}", text)
