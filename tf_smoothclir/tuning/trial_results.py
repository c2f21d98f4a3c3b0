"""What a search leaves: tables of its trials, a heat map, and flags to train with."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

import keras_tuner
from keras_tuner.engine.trial import TrialStatus

from tf_smoothclir.evaluation.report import markdown_table
from tf_smoothclir.settings.run import METRICS, RunSettings
from tf_smoothclir.tuning.heat_map import threshold_heat_map
from tf_smoothclir.tuning.oracles import trial_values
from tf_smoothclir.tuning.search_space import (
    parse_thresholds,
    threshold_tuples,
    uses_thresholds,
    with_values,
)
from tf_smoothclir.utils.files import write_json, write_text

HEAT_MAP = ("heatmap.png", "heatmap.svg")


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """A finished trial.

    Attributes:
        id: Number of the trial, from "0000"; names its directory.
        values: Searched setting -> value; thresholds as the flag has them.
        metrics: The seven metrics on validation; with folds, their means.
        seconds: Time spent in training.
        best_epoch: Epoch whose weights were measured; with folds, the mean.
        diverged: Whether loss, gradient or a weight became infinite or NaN; metrics are 0 then.
    """

    id: str
    values: dict
    metrics: dict[str, float]
    seconds: float
    best_epoch: float
    diverged: bool


def trial_results(oracle: keras_tuner.Oracle) -> list[TrialResult]:
    """Returns the finished trials of an oracle, best first; among equals the earlier one."""
    finished = [t for t in oracle.trials.values() if t.status == TrialStatus.COMPLETED]
    finished.sort(key=lambda trial: (-trial.score, trial.trial_id))
    return [_result(trial) for trial in finished]


def _result(trial) -> TrialResult:
    names = (*METRICS, "seconds", "best_epoch", "diverged")
    figures = {name: trial.metrics.get_last_value(name) for name in names}
    return TrialResult(
        id=trial.trial_id,
        values=trial_values(trial),
        metrics={name: figures[name] for name in METRICS},
        seconds=figures["seconds"],
        best_epoch=figures["best_epoch"],
        diverged=bool(figures["diverged"]),
    )


def write_results(
    output_dir: Path, results: Sequence[TrialResult], settings: RunSettings, *, folds: int
) -> None:
    """Writes trials.csv, trials.md, best.flags, best.json and the heat map.

    Args:
        output_dir: The directory of the search.
        results: From `trial_results`, one at least.
        settings: The fixed part; its `select_metric` is the objective.
        folds: Number of folds; 0 or 1 for none.
    """
    objective, best = settings.training.select_metric, results[0]
    header, rows = table(results, objective)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_text(output_dir / "trials.csv", text.getvalue())
    drawn = _draw(output_dir, results, settings)
    write_text(output_dir / "trials.md", _page(results, settings, folds, drawn))
    chosen = with_values(settings, best.values)
    write_text(output_dir / "best.flags", "\n".join(chosen.flag_lines()) + "\n")
    write_json(
        output_dir / "best.json",
        {
            "objective": objective,
            "score": best.metrics[objective],
            "folds": folds,
            "trials": len(results),
            **{("trial" if k == "id" else k): v for k, v in dataclasses.asdict(best).items()},
        },
    )


def table(results: Sequence[TrialResult], objective: str) -> tuple[list[str], list[list]]:
    """Returns the header and the rows of the table of trials, the objective before the rest."""
    others = [name for name in METRICS if name != objective]
    header = ["trial", *results[0].values, objective, *others, "best_epoch", "seconds", "diverged"]
    rows = [
        [
            result.id,
            *result.values.values(),
            *(f"{result.metrics[name]:.4f}" for name in (objective, *others)),
            f"{result.best_epoch:g}",
            f"{result.seconds:.1f}",
            "yes" if result.diverged else "",
        ]
        for result in results
    ]
    return header, rows


def best_few(results: Sequence[TrialResult], objective: str, number: int = 5) -> str:
    """Returns the head of the table, in Markdown."""
    header, rows = table(results, objective)
    return markdown_table(header, rows[:number])


def _page(results, settings, folds, drawn) -> str:
    objective = settings.training.select_metric
    how = f"mean of {folds} folds" if folds > 1 else "validation split"
    lines = [
        f"# {len(results)} trials, best {objective} first",
        f"All metrics: {how}, candidate lists with {settings.training.negatives} sampled documents"
        f" a query, at the epoch with the best {objective}. seconds: time in training.",
        markdown_table(*table(results, objective)).rstrip("\n"),
    ]
    lines += [f"![{objective} by thresholds]({HEAT_MAP[0]})"] if drawn else []
    return "\n\n".join(lines) + "\n"


def _draw(output_dir: Path, results: Sequence[TrialResult], settings: RunSettings) -> bool:
    """Draws the heat map where two thresholds were searched; the best trial of each cell."""
    objective, searched = settings.training.select_metric, set(threshold_tuples(2))
    cells = {}
    for result in results:  # best first
        thresholds = parse_thresholds(result.values.get("thresholds", "0"))
        loss = result.values.get("loss", settings.model.loss)
        if thresholds in searched and uses_thresholds(loss):
            cells.setdefault(thresholds, result.metrics[objective])
    if not cells:
        return False
    others = [name for name in results[0].values if name not in ("thresholds", "epochs")]
    note = f"\n(best over {', '.join(others)})" if others else ""
    threshold_heat_map(
        [output_dir / name for name in HEAT_MAP],
        cells,
        sorted({level for thresholds in searched for level in thresholds}),
        best=next(iter(cells)),
        metric=f"validation {objective}",
        title=f"{objective} by thresholds{note}",
    )
    return True
