"""The run report for people, `report.md`, and Markdown tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tf_smoothclir.utils.files import write_text

if TYPE_CHECKING:  # importing it takes seconds
    from tf_smoothclir.evaluation.evaluate import Evaluation


def metrics_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Returns a Markdown table with a row per metric and a column per split."""
    names = list(next(iter(evaluations.values())).metrics)
    header = ["metric", *(f"{split} (95% interval)" for split in evaluations), "queries"]
    rows = []
    for name in names:
        cells = [
            f"{e.metrics[name]:.4f} ({e.intervals[name][0]:.4f} to {e.intervals[name][1]:.4f})"
            for e in evaluations.values()
        ]
        counts = " / ".join(f"{e.counts[name]:,}" for e in evaluations.values())
        rows.append([name, *cells, counts])
    return markdown_table(header, rows)


def components_table(retrievers: Mapping[str, Mapping[str, Evaluation]]) -> str:
    """Returns a Markdown table: a row for each metric, a column for each split and retriever.

    Args:
        retrievers: Name -> split -> what was measured.
    """
    splits = list(next(iter(retrievers.values())))
    columns = [(split, name) for split in splits for name in retrievers]
    metrics = next(iter(next(iter(retrievers.values())).values())).metrics
    rows = [
        [metric, *(f"{retrievers[name][split].metrics[metric]:.4f}" for split, name in columns)]
        for metric in metrics
    ]
    return markdown_table(["metric", *(f"{split}, {name}" for split, name in columns)], rows)


def print_metrics(metrics: Mapping[str, float], split: str = "test") -> None:
    """Prints one metric per line."""
    for name, value in metrics.items():
        print(f"{split} {name:16} {value:.4f}")


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table; bars in cells are escaped, line breaks become spaces."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(value: object) -> str:
    return " ".join(str(value).splitlines()).replace("|", "\\|")


def write_report(
    path: str | os.PathLike,
    *,
    title: str,
    facts: Mapping[str, object],
    evaluations: Mapping[str, Evaluation],
    sections: Mapping[str, str],
    rules: Mapping[str, str],
    plots: Mapping[str, str],
    commands: Sequence[str],
    flags: Sequence[str],
) -> None:
    """Writes the report.

    Args:
        path: Markdown file.
        title: Heading.
        facts: Name -> value: the data, the model and the training.
        evaluations: Split -> what was measured.
        sections: Heading -> Markdown, what follows the metrics.
        rules: What the metrics depend on.
        plots: Caption -> path relative to the report.
        commands: What to run next.
        flags: All flags of the run.
    """
    parts = [f"# {title}", markdown_table(["", ""], [[k, v] for k, v in facts.items()])]
    parts += ["## Metrics", metrics_table(evaluations)]
    parts += [f"* {name}: {text}." for name, text in rules.items()]
    for heading, text in sections.items():
        parts += [f"## {heading}", text]
    parts += _predicted_grades(evaluations)
    parts += ["## Plots", *(f"![{caption}]({file})" for caption, file in plots.items())]
    parts += ["## Next", "```\n" + "\n".join(commands) + "\n```"]
    parts += ["## Flags", "```\n" + "\n".join(flags) + "\n```"]
    write_text(path, "\n\n".join(part.rstrip("\n") for part in parts) + "\n")


def _predicted_grades(evaluations: Mapping[str, Evaluation]) -> list[str]:
    graded = {split: e for split, e in evaluations.items() if e.confusion is not None}
    if not graded:
        return []
    parts = ["## Predicted grades", grades_table(graded)]
    for split, evaluation in graded.items():
        parts += [f"### Candidate lists, {split}", confusion_table(evaluation.confusion)]
        if evaluation.hit_confusion is not None:
            parts += [f"### Hits, {split}", confusion_table(evaluation.hit_confusion)]
    return parts


def grades_table(evaluations: Mapping[str, Evaluation]) -> str:
    """Returns a Markdown table of how well grades are predicted: a row per split and kind."""
    rows = [
        [f"{split}, {kind}", *(f"{value:.4f}" for value in metrics.values())]
        for split, evaluation in evaluations.items()
        for kind, metrics in evaluation.grade_metrics().items()
    ]
    return markdown_table(["", "accuracy", "macro-averaged accuracy", "quadratic kappa"], rows)


def confusion_table(counts: np.ndarray) -> str:
    """Returns a Markdown table of `[K, K]` counts: true by predicted grade, and shares right."""
    grades = range(len(counts))
    header = ["true grade", *(f"predicted {grade}" for grade in grades), "right"]
    rows = [
        [grade, *(f"{counts[grade, other]:,}" for other in grades), _share(counts[grade], grade)]
        for grade in grades
    ]
    rows.append(["right of those", *(_share(counts[:, grade], grade) for grade in grades), ""])
    return markdown_table(header, rows)


def _share(row, grade) -> str:
    return f"{row[grade] / row.sum():.1%}" if row.sum() else "none"
