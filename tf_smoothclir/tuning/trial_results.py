"""The trials of a search: tables, a heat map, and the flags of the best one."""

from __future__ import annotations

import csv
import dataclasses
import io
from collections.abc import Sequence
from pathlib import Path

import keras_tuner
from keras_tuner.engine.trial import TrialStatus

from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.tuning.heat_map import threshold_heat_map
from tf_smoothclir.tuning.oracles import trial_values
from tf_smoothclir.tuning.search_directory import HEAT_MAP
from tf_smoothclir.tuning.search_space import (
    parse_thresholds,
    threshold_tuples,
    uses_thresholds,
    with_values,
)
from tf_smoothclir.utils.files import write_json, write_text
from tf_smoothclir.utils.tables import markdown_table, print_table


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """A finished trial.

    Attributes:
        id: Number of the trial, from "0000"; the name of its directory.
        values: Searched setting -> value; thresholds are written as in their flag.
        metrics: The seven metrics on validation; with folds, their means.
        seconds: Training time.
        best_epoch: Epoch whose weights were evaluated; with folds, the mean.
        diverged: Whether the loss, a gradient or a weight became infinite or NaN; the metrics are
            0 then.
    """

    id: str
    values: dict
    metrics: dict[str, float]
    seconds: float
    best_epoch: float
    diverged: bool


def trial_results(oracle: keras_tuner.Oracle) -> list[TrialResult]:
    """The finished trials of an oracle, best first; ties go to the earlier trial."""
    finished = [t for t in oracle.trials.values() if t.status == TrialStatus.COMPLETED]
    finished.sort(key=lambda trial: (-trial.score, trial.trial_id))
    return [_trial_result(trial) for trial in finished]


def _trial_result(trial) -> TrialResult:
    names = (*METRICS, "seconds", "best_epoch", "diverged")
    reported = {name: trial.metrics.get_last_value(name) for name in names}
    return TrialResult(
        id=trial.trial_id,
        values=trial_values(trial),
        metrics={name: reported[name] for name in METRICS},
        seconds=reported["seconds"],
        best_epoch=reported["best_epoch"],
        diverged=bool(reported["diverged"]),
    )


def write_trial_results(
    output_dir: Path, trials: Sequence[TrialResult], settings: RunSettings, *, folds: int
) -> None:
    """Writes trials.csv, trials.md, best.flags, best.json and the heat map."""
    objective, best = settings.training.select_metric, trials[0]
    header, rows = _table(trials, objective)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([header, *rows])
    write_text(output_dir / "trials.csv", text.getvalue())
    drawn = _draw_heat_map(output_dir, trials, settings)
    write_text(output_dir / "trials.md", _page(trials, settings, folds, drawn))
    chosen = with_values(settings, best.values)
    write_text(output_dir / "best.flags", "\n".join(chosen.flag_lines()) + "\n")
    write_json(
        output_dir / "best.json",
        {
            "objective": objective,
            "score": best.metrics[objective],
            "folds": folds,
            "trials": len(trials),
            **{("trial" if k == "id" else k): v for k, v in dataclasses.asdict(best).items()},
        },
    )


def _table(trials: Sequence[TrialResult], objective: str) -> tuple[list[str], list[list]]:
    """Header and rows; the objective comes before the other metrics."""
    others = [name for name in METRICS if name != objective]
    header = ["trial", *trials[0].values, objective, *others, "best epoch", "seconds", "diverged"]
    rows = [
        [
            trial.id,
            *trial.values.values(),
            *(f"{trial.metrics[name]:.4f}" for name in (objective, *others)),
            f"{trial.best_epoch:g}",
            f"{trial.seconds:.1f}",
            "yes" if trial.diverged else "",
        ]
        for trial in trials
    ]
    return header, rows


def print_best_trials(trials: Sequence[TrialResult], objective: str, number: int = 5) -> None:
    """Prints a table of the best trials."""
    header, rows = _table(trials, objective)
    print_table(header, rows[:number], keys=1 + len(trials[0].values))


def _page(trials, settings, folds, drawn) -> str:
    objective = settings.training.select_metric
    how = f"mean of {folds} folds" if folds > 1 else "validation split"
    lines = [
        f"# {len(trials)} trials, best {objective} first",
        f"All metrics: {how}, candidate lists with {settings.training.negatives} sampled documents"
        f" per query, at the epoch with the best {objective}. seconds: training time.",
        markdown_table(*_table(trials, objective)).rstrip("\n"),
    ]
    lines += [f"![{objective} by thresholds]({HEAT_MAP})"] if drawn else []
    return "\n\n".join(lines) + "\n"


def _draw_heat_map(output_dir: Path, trials: Sequence[TrialResult], settings: RunSettings) -> bool:
    """Draws the best trial of each pair, if two thresholds were searched; returns whether."""
    objective, searched = settings.training.select_metric, set(threshold_tuples(2))
    scores = {}
    for trial in trials:  # best first
        thresholds = parse_thresholds(trial.values.get("thresholds", "0"))
        loss = trial.values.get("loss", settings.model.loss)
        if thresholds in searched and uses_thresholds(loss):
            scores.setdefault(thresholds, trial.metrics[objective])
    if not scores:
        return False
    others = [name for name in trials[0].values if name not in ("thresholds", "epochs")]
    note = f"\n(best over {', '.join(others)})" if others else ""
    threshold_heat_map(
        output_dir / HEAT_MAP,
        scores,
        sorted({level for thresholds in searched for level in thresholds}),
        best=next(iter(scores)),
        metric=f"validation {objective}",
        title=f"{objective} by thresholds{note}",
    )
    return True
