"""A comparison as tables: Markdown for people, CSV and LaTeX for papers, JSON for programs."""

from __future__ import annotations

import csv
import dataclasses
import io
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from tf_smoothclir.evaluation.compare import Difference
from tf_smoothclir.evaluation.metrics import RULES
from tf_smoothclir.evaluation.significance import RESAMPLES
from tf_smoothclir.evaluation.trec_files import RunMetrics
from tf_smoothclir.utils.files import write_json, write_text
from tf_smoothclir.utils.tables import markdown_table

HEADER = (
    "metric",
    "system",
    "queries",
    "mean",
    "difference (95% interval)",
    "p",
    "p (Holm)",
    "p (t-test)",
    "d_z",
    "wins/ties/losses",
)
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "θ": r"$\theta$",
    "ε": r"$\varepsilon$",
    "†": r"\textsuperscript{$\dagger$}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}


def table_rows(rows: Sequence[Difference], baseline: str) -> list[list[str]]:
    """The cells of the tables: for each metric the baseline, then the other systems."""
    cells, metric = [], None
    for row in rows:
        if row.metric != metric:
            metric = row.metric
            blank = [""] * (len(HEADER) - 4)
            cells.append([metric, baseline, f"{row.queries:,}", f"{row.baseline_mean:.4f}", *blank])
        cells.append(
            [
                metric,
                row.system,
                f"{row.queries:,}",
                f"{row.mean:.4f}",
                f"{row.difference:+.4f} ({row.low:+.4f} to {row.high:+.4f})",
                *map(_p_value, (row.randomization_p, row.holm_p, row.t_test_p)),
                f"{row.effect_size:+.2f}",
                f"{row.wins}/{row.ties}/{row.losses}",
            ]
        )
    return cells


def _p_value(p: float) -> str:
    return f"{p:.4f}" if p >= 0.0001 else f"{p:.0e}"


def legend(
    rows: Sequence[Difference],
    systems: Mapping[str, RunMetrics],
    *,
    baseline: str,
    best_grade: int,
    seed: int,
    samples: int,
) -> dict[str, str]:
    """What the numbers of a comparison depend on."""
    others = len(systems) - 1
    judged = len(systems[baseline].query_ids)
    left_out = max(row.left_out for row in rows)
    found = {
        "baseline": f"{baseline}; a positive difference is better than it",
        "queries": f"{judged:,} judged; a metric leaves out those without a document that is"
        f" relevant for it, here {left_out:,} at most",
        "p": "two-sided paired randomisation test over queries, every pattern of signs where there"
        f" are at most {samples:,}, else {samples:,} random ones, seed {seed}",
        "p (Holm)": f"p adjusted for the {others} comparison{'s' * (others > 1)} within a metric;"
        " nothing is adjusted over metrics",
        "p (t-test)": "two-sided paired t-test, not adjusted",
        "interval": f"95% percentile bootstrap over queries, {RESAMPLES:,} resamples, seed {seed}",
        "d_z": "mean difference by the standard deviation of the differences",
        "gain": RULES["gain"],
        "relevance": f"{RULES['relevance']}; the highest grade here is {best_grade}",
        "ties": RULES["ties"],
        "judgments": "unjudged documents have grade 0; relevant documents that are not retrieved"
        " count in NDCG and MAP; judged queries that a run lacks score 0",
    }
    return {**found, **{f"run {name}": _remarks(run) for name, run in systems.items()}}


def _remarks(run: RunMetrics) -> str:
    return (
        f"lacks {run.missing_queries:,} judged queries; left out are {run.unjudged_queries:,}"
        f" queries without judgments; {run.unjudged_documents:,} documents are unjudged"
    )


def markdown(rows: Sequence[Difference], baseline: str, rules: Mapping[str, str]) -> str:
    """The table and its legend."""
    lines = "".join(f"* {name}: {text}.\n" for name, text in rules.items())
    return f"{markdown_table(HEADER, table_rows(rows, baseline))}\n{lines}"


def csv_table(rows: Sequence[Difference], baseline: str) -> str:
    """One line per metric and system, with all digits and the name of the baseline."""
    names = [field.name for field in dataclasses.fields(Difference)]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*names, "baseline"])
    writer.writerows([*dataclasses.astuple(row), baseline] for row in rows)
    return text.getvalue()


def latex_table(rows: Sequence[Difference], baseline: str) -> str:
    """A LaTeX tabular with a rule between metrics; it needs the package booktabs."""
    lines = [
        r"\begin{tabular}{llrrlrrrrr}",
        r"\toprule",
        _latex_line(HEADER),
    ]
    metric = None
    for cells in table_rows(rows, baseline):
        if cells[0] != metric:
            metric = cells[0]
            lines.append(r"\midrule")
        lines.append(_latex_line(cells))
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex_line(cells: Sequence[str]) -> str:
    return " & ".join(map(_latex_cell, cells)) + r" \\"


def _latex_cell(text: str) -> str:
    return re.sub(r"(?<![\w-])([+-])(?=\d|inf)", r"$\1$", latex_escape(text))


def latex_escape(text: object) -> str:
    """Escapes a text so that LaTeX shows it literally."""
    return re.sub(r"[\\~^&%$#_{}θε†]", lambda found: _LATEX[found[0]], str(text))


def write_comparison(
    directory: Path,
    rows: Sequence[Difference],
    systems: Mapping[str, RunMetrics],
    baseline: str,
    rules: Mapping[str, str],
) -> None:
    """Writes comparison.md, comparison.csv, comparison.tex and comparison.json.

    In JSON, an infinite effect size is null.
    """
    write_text(directory / "comparison.md", markdown(rows, baseline, rules))
    write_text(directory / "comparison.csv", csv_table(rows, baseline))
    write_text(directory / "comparison.tex", latex_table(rows, baseline))
    write_json(
        directory / "comparison.json",
        {
            "baseline": baseline,
            "systems": list(systems),
            "comparisons": [_json_row(row) for row in rows],
            "rules": dict(rules),
        },
    )


def _json_row(row: Difference) -> dict:
    finite = math.isfinite(row.effect_size)
    return {**dataclasses.asdict(row), "effect_size": row.effect_size if finite else None}
