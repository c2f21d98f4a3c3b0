"""Tables of experiments, as Markdown, LaTeX and CSV."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from tf_smoothclir.papers.laboratory.system_metrics import SystemMetrics
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.tables import csv_table, latex_escape, latex_table, markdown_table

MARK = "†"
_COSTS = ("seconds an epoch", "MB")
_CSV_COLUMNS = (
    "source",
    "set",
    "comparable",
    "system",
    "thresholds",
    "metric",
    "mean",
    "lowest_seed",
    "highest_seed",
    "seeds",
    "queries",
    "differs_from_first",
)


@dataclasses.dataclass(frozen=True)
class Value:
    """A metric in a table."""

    mean: float  # mean over the seeds
    low: float  # value of the lowest seed
    high: float  # value of the highest seed
    best: bool = False  # whether the mean is the best of its column
    differs: bool = False  # whether the difference from the first row is significant

    def __str__(self) -> str:
        """A text such as "0.853 (0.850 to 0.856) †"; one seed has no spread."""
        text = f"{self.mean:.3f}"
        if self.low != self.high:
            text += f" ({self.low:.3f} to {self.high:.3f})"
        return text + f" {MARK}" * self.differs


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
        numeric = [any(isinstance(row[c], Value) for row in self.rows) for c in self._indices]
        rows = [[_bold(cell, r"\textbf{{{}}}", latex_escape) for cell in row] for row in self.rows]
        columns = "".join("r" if is_number else "l" for is_number in numeric)
        return f"% {self.caption}\n{latex_table(self.columns, [rows], columns)}"

    @property
    def _indices(self) -> range:
        return range(len(self.columns))


@dataclasses.dataclass
class Written:
    """What an experiment shows of a set."""

    tables: list[Table]  # our tables
    plots: list[Path] = dataclasses.field(default_factory=list)  # PNG files
    # the conditions of the measurement, one sentence or two each
    notes: list[str] = dataclasses.field(default_factory=list)
    csv: str = ""  # the unrounded values


def _bold(cell: object, pattern: str, escape=str) -> str:
    text = escape(f"{cell:,}" if isinstance(cell, int) else cell)
    return pattern.format(text) if isinstance(cell, Value) and cell.best else text


def system_table(
    caption: str,
    first_column: str,
    systems: Sequence[SystemMetrics],
    marked: Collection[tuple[str, str]] = (),
    paper: Mapping[str, Mapping[str, float]] | None = None,
    *,
    metrics: Sequence[str] = METRICS,
    costs: bool = False,
) -> Table:
    """A table with a row for each system: its thresholds and the mean of each metric."""
    best = {m: max(system.values[m].mean() for system in systems) for m in metrics}
    rows = []
    for system in systems:
        values = metric_values(system, metrics, best, marked)
        rows.append((system.name, threshold_text(system), *values, *_costs(system) * costs))
        if paper and system.name in paper:
            rows.append((f"{system.name} (paper)", "", *_paper_values(paper[system.name])))
    return Table(caption, (first_column, "θ", *metrics, *_COSTS * costs), tuple(rows))


def metric_values(
    system: SystemMetrics,
    metrics: Sequence[str],
    best: Mapping[str, float],
    marked: Collection[tuple[str, str]],
) -> list[Value]:
    """The values of a row; means that are those of `best` are bold."""
    return [
        Value(v.mean(), v.min(), v.max(), v.mean() == best.get(m), (system.name, m) in marked)
        for m, v in ((m, system.values[m]) for m in metrics)
    ]


def _costs(system: SystemMetrics) -> tuple[str, str]:
    return f"{system.epoch_seconds.mean():.1f}", f"{system.peak_mb.mean():,.0f}"


def paper_table(
    caption: str, first_column: str, languages: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> Table:
    """The paper's own table: language -> system -> metric -> value."""
    rows = []
    for language, systems in languages.items():
        best = {m: max(values[m] for values in systems.values()) for m in METRICS}
        rows += [(language, name, *_paper_values(values, best)) for name, values in systems.items()]
    return Table(caption, ("documents", first_column, *METRICS), tuple(rows))


def _paper_values(values: Mapping[str, float], best: Mapping[str, float] | None = None) -> list:
    return [
        Value(values[m], values[m], values[m], bool(best) and values[m] == best[m]) for m in METRICS
    ]


def threshold_text(system: SystemMetrics) -> str:
    """The thresholds, or the three cut points of 3PartL2."""
    return ", ".join(f"{value:g}" for value in system.thresholds)


def system_csv(
    set_name: str,
    systems: Sequence[SystemMetrics],
    marked: Collection[tuple[str, str]],
    paper: Mapping[str, Mapping[str, Mapping[str, float]]],
    published: str = "",
) -> str:
    """A CSV line for each system and metric, unrounded, then the paper's values."""
    lines = []
    for system in systems:
        source = ("ours", set_name, "", system.name, threshold_text(system))
        seeds = " ".join(map(str, system.seeds))
        for metric, values in system.values.items():
            spread = (values.mean(), values.min(), values.max(), seeds, system.queries[metric])
            differs = "yes" if (system.name, metric) in marked else "no"
            lines.append((*source, metric, *spread, differs))
    for language, of_language in paper.items():
        comparable = "yes" if language == published else "no"
        for name, of_system in of_language.items():
            for metric, value in of_system.items():
                source = ("paper", f"WikiCLIR {language}", comparable, name, "")
                lines.append((*source, metric, value, "", "", "", "", ""))
    return csv_table(_CSV_COLUMNS, lines)


def plain_csv(table: Table) -> str:
    """A table of texts and numbers as CSV."""
    return csv_table(table.columns, table.rows)
