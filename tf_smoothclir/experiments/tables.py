"""Tables of experiments: Markdown for people, LaTeX for papers, CSV for programs."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Collection, Mapping, Sequence

from tf_smoothclir.evaluation.comparison_report import latex_escape
from tf_smoothclir.evaluation.report import markdown_table
from tf_smoothclir.experiments.scores import Result
from tf_smoothclir.settings.run import METRICS

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
    """A figure in a table.

    Attributes:
        mean: Over seeds.
        low: Of the lowest seed.
        high: Of the highest seed.
        best: Whether it is the best of its column.
        differs: Whether it differs from the first row by more than chance.
    """

    mean: float
    low: float
    high: float
    best: bool = False
    differs: bool = False

    def __str__(self) -> str:
        """Such as "0.853 (0.850 to 0.856) †"; without the spread for one seed."""
        text = f"{self.mean:.3f}"
        if self.low != self.high:
            text += f" ({self.low:.3f} to {self.high:.3f})"
        return text + f" {MARK}" * self.differs


@dataclasses.dataclass(frozen=True)
class Table:
    """Columns and rows; a cell is a text or a `Value`.

    Attributes:
        caption: What it is.
        columns: Names.
        rows: Cells.
    """

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def markdown(self) -> str:
        """Returns the table with its caption; the best values are bold."""
        rows = [[_bold(cell, "**{}**") for cell in row] for row in self.rows]
        return f"{self.caption}\n\n{markdown_table(self.columns, rows)}"

    def latex(self) -> str:
        """Returns a tabular for the package booktabs; the best values are bold."""
        numeric = [any(isinstance(row[c], Value) for row in self.rows) for c in self._indices]
        rows = [
            " & ".join(_bold(cell, r"\textbf{{{}}}", latex_escape) for cell in row)
            for row in self.rows
        ]
        lines = [
            f"% {self.caption}",
            rf"\begin{{tabular}}{{{''.join('r' if is_number else 'l' for is_number in numeric)}}}",
            r"\toprule",
            " & ".join(map(latex_escape, self.columns)) + r" \\",
            r"\midrule",
            *(rf"{row} \\" for row in rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return "\n".join(lines) + "\n"

    def as_texts(self) -> dict:
        """Returns {"columns": [...], "rows": [[...]]}, all texts, for the page; best ones bold."""
        rows = [[_bold(cell, "**{}**") for cell in row] for row in self.rows]
        return {"columns": list(self.columns), "rows": rows}

    @property
    def _indices(self) -> range:
        return range(len(self.columns))


def _bold(cell: object, pattern: str, escape=str) -> str:
    text = escape(cell)
    return pattern.format(text) if isinstance(cell, Value) and cell.best else text


def result_table(
    caption: str,
    first_column: str,
    results: Sequence[Result],
    marked: Collection[tuple[str, str]] = (),
    paper: Mapping[str, Mapping[str, float]] | None = None,
    *,
    metrics: Sequence[str] = METRICS,
    costs: bool = False,
) -> Table:
    """Returns a row for each system: its thresholds and the mean of each metric.

    Args:
        caption: What it is.
        first_column: What the systems differ in.
        results: The systems.
        marked: (system, metric) that differ from the first row by more than chance.
        paper: System -> metric -> value that the paper has for this set; each stands below ours.
        metrics: Names of the columns.
        costs: Whether there are columns of time and memory.
    """
    best = {m: max(result.values[m].mean() for result in results) for m in metrics}
    rows = []
    for result in results:
        values = [
            Value(v.mean(), v.min(), v.max(), v.mean() == best[m], (result.name, m) in marked)
            for m, v in ((m, result.values[m]) for m in metrics)
        ]
        rows.append((result.name, threshold_text(result), *values, *_costs(result) * costs))
        if paper and result.name in paper:
            rows.append((f"{result.name} (paper)", "", *_paper_values(paper[result.name])))
    return Table(caption, (first_column, "θ", *metrics, *_COSTS * costs), tuple(rows))


def _costs(result: Result) -> tuple[str, str]:
    return f"{result.epoch_seconds.mean():.1f}", f"{result.peak_mb.mean():,.0f}"


def paper_table(
    caption: str, first_column: str, languages: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> Table:
    """Returns the paper's own table: language -> system -> metric -> value."""
    rows = []
    for language, systems in languages.items():
        best = {m: max(values[m] for values in systems.values()) for m in METRICS}
        rows += [(language, name, *_paper_values(values, best)) for name, values in systems.items()]
    return Table(caption, ("documents", first_column, *METRICS), tuple(rows))


def _paper_values(values: Mapping[str, float], best: Mapping[str, float] | None = None) -> list:
    return [
        Value(values[m], values[m], values[m], bool(best) and values[m] == best[m]) for m in METRICS
    ]


def threshold_text(result: Result) -> str:
    """Returns the thresholds, or the three cut points of 3PartL2."""
    return ", ".join(f"{value:g}" for value in result.thresholds)


def result_csv(
    set_name: str,
    results: Sequence[Result],
    marked: Collection[tuple[str, str]],
    paper: Mapping[str, Mapping[str, Mapping[str, float]]],
    published: str = "",
) -> str:
    """Returns one line for each system and metric, ours with every digit, then the paper's.

    Args:
        set_name: Name of our set.
        results: The systems.
        marked: (system, metric) that differ from the first system by more than chance.
        paper: Language -> system -> metric -> value.
        published: Language in which our set is the paper's own, or "".
    """
    lines = []
    for result in results:
        thresholds, seeds = threshold_text(result), " ".join(map(str, result.seeds))
        for metric, values in result.values.items():
            figures = (values.mean(), values.min(), values.max(), seeds, result.queries[metric])
            differs = "yes" if (result.name, metric) in marked else "no"
            lines.append(("ours", set_name, "", result.name, thresholds, metric, *figures, differs))
    for language, systems in paper.items():
        comparable = "yes" if language == published else "no"
        for name, of_system in systems.items():
            for metric, value in of_system.items():
                source = ("paper", f"WikiCLIR {language}", comparable, name, "")
                lines.append((*source, metric, value, "", "", "", "", ""))
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([_CSV_COLUMNS, *lines])
    return text.getvalue()


def plain_csv(table: Table) -> str:
    """Returns a table of texts and numbers as CSV."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([table.columns, *table.rows])
    return text.getvalue()
