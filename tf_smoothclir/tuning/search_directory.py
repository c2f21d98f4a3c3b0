"""The directory of a search: what is searched, and its trials as tables, heat map, best flags."""

import dataclasses
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import keras_tuner
import numpy as np
from keras_tuner.engine.trial import TrialStatus
from matplotlib import patches

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.plots import plt, save_png
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.run import RunSettings, differences
from tf_smoothclir.settings.search import Search
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage import files
from tf_smoothclir.tuning.oracles import trial_values
from tf_smoothclir.tuning.search_space import parse_thresholds, threshold_tuples, with_values
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.printing import csv_table, markdown_table

TRIALS, LOGS = "trials", "logs"
ORACLE_STATE = "oracle.json"
HEAT_MAP = "heatmap.png"
DATA = "data"  # a set that was given in memory
_RECORD, _LOCK = "tuning.json", ".lock"
# In the order in which --overwrite deletes them.
_PARTS = (
    "best.flags",
    "best.json",
    "trials.csv",
    "trials.md",
    HEAT_MAP,
    ORACLE_STATE,
    TRIALS,
    LOGS,
    _RECORD,
)
_BEST = {"fill": False, "edgecolor": "#D55E00", "linewidth": 3}  # vermilion, Okabe and Ito (2008)
_EMPTY = "#d9d9d9"  # not tried, or thresholds that do not rise


def only_search(output_dir: Path) -> AbstractContextManager:
    """Keeps other searches out of the directory."""
    return files.locked(
        output_dir / _LOCK,
        f"--output_dir={output_dir}",
        "another search is running there",
        "Wait for it, or choose another directory; --workers=2 runs two trials at a time",
    )


@dataclasses.dataclass(frozen=True)
class _Record:
    """What a search is of; `data` is the fingerprint of the set."""

    search: dict
    settings: dict
    data: str


def open_search(
    output_dir: Path, settings: RunSettings, search: Search, overwrite: bool = False
) -> None:
    """Records a new search in `tuning.json`, or checks that the directory holds the same one."""
    path, fingerprint = output_dir / _RECORD, source_of(settings.data).fingerprint()
    if overwrite and path.is_file():
        files.delete_in(output_dir, _PARTS)
    if path.is_file():
        there = files.read_record(path, _Record, "Restore the file, or give --overwrite")
        before = Search(**there.search).values()
        changed = [
            f"--{name}: {value_text(before[name])} there, {value_text(value)} here"
            for name, value in search.values().items()
            if value != before[name] and name != "max_trials"
        ]
        changed += differences(RunSettings.from_dict(there.settings), settings)
        changed += ["the content of the data"] if there.data != fingerprint else []
        if changed:
            raise InputError(
                f"--output_dir={output_dir}: it holds a search with other settings"
                f" ({'; '.join(changed)}). Give the same flags to continue it, choose another"
                " directory, or give --overwrite."
            )
    elif others := files.names_in(output_dir) - {_LOCK, DATA}:
        reason = f"it holds no search, but {', '.join(sorted(others)[:3])}"
        raise input_error(f"--output_dir={output_dir}", reason, "Choose another directory")
    record = _Record(search.values(), settings.to_dict(), fingerprint)
    files.write_json(path, dataclasses.asdict(record))


@dataclasses.dataclass(frozen=True)
class TrialResult:
    """A finished trial.

    Attributes:
        id: Number of the trial, from "0000"; the name of its directory.
        values: Searched setting -> value; thresholds are written as in their flag. What the loss
            of the trial does not use is left out.
        metrics: The seven metrics on validation; with folds, their means.
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
    return [
        TrialResult(
            id=trial.trial_id,
            values=trial_values(trial),
            metrics={name: trial.metrics.get_last_value(name) for name in METRICS},
            seconds=trial.metrics.get_last_value("seconds"),
            best_epoch=trial.metrics.get_last_value("best_epoch"),
            diverged=bool(trial.metrics.get_last_value("diverged")),
        )
        for trial in finished
    ]


def write_trial_results(
    output_dir: Path, trials: Sequence[TrialResult], settings: RunSettings, *, folds: int
) -> None:
    """Writes trials.csv, trials.md, best.flags, best.json and the heat map."""
    objective, best = settings.training.select_metric, trials[0]
    header, rows = trial_table(trials, objective)
    files.write_text(output_dir / "trials.csv", csv_table(header, rows))
    how = f"mean of {folds} folds" if folds > 1 else "validation split"
    lines = [
        f"# {len(trials)} trials, best {objective} first",
        f"All metrics: {how}, candidate lists with {settings.training.negatives} sampled documents"
        f" per query, at the epoch with the best {objective}. seconds: training time.",
        markdown_table(header, rows).rstrip("\n"),
    ]
    if _draw_heat_map(output_dir / HEAT_MAP, trials, settings):
        lines.append(f"![{objective} by thresholds]({HEAT_MAP})")
    files.write_text(output_dir / "trials.md", "\n\n".join(lines) + "\n")
    flags = with_values(settings, best.values).flag_lines()
    files.write_text(output_dir / "best.flags", "\n".join(flags) + "\n")
    chosen = {"trial" if name == "id" else name: value for name, value in vars(best).items()}
    about = {"objective": objective, "score": best.metrics[objective], "folds": folds}
    files.write_json(output_dir / "best.json", {**about, "trials": len(trials), **chosen})


def trial_table(trials: Sequence[TrialResult], objective: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows; the objective comes before the other metrics."""
    metrics = sorted(METRICS, key=lambda name: name != objective)
    names = list(dict.fromkeys(name for trial in trials for name in trial.values))
    header = ["trial", *names, *metrics, "best epoch", "seconds", "diverged"]
    rows = [
        [
            trial.id,
            *(str(trial.values.get(name, "")) for name in names),
            *(f"{trial.metrics[name]:.4f}" for name in metrics),
            f"{trial.best_epoch:g}",
            f"{trial.seconds:.1f}",
            "yes" if trial.diverged else "",
        ]
        for trial in trials
    ]
    return header, rows


def _draw_heat_map(path: Path, trials: Sequence[TrialResult], settings: RunSettings) -> bool:
    """Draws the best trial of each pair, θ_1 across; whether two thresholds were searched."""
    objective, searched = settings.training.select_metric, set(threshold_tuples(2))
    scores = {}
    for trial in trials:  # best first
        thresholds = parse_thresholds(trial.values.get("thresholds", "0"))
        if thresholds in searched:
            scores.setdefault(thresholds, trial.metrics[objective])
    if not scores:
        return False
    levels = sorted({level for thresholds in searched for level in thresholds})
    across, up = levels[:-1], levels[1:]
    cells = np.full((len(up), len(across)), np.nan)
    for (first, second), score in scores.items():
        cells[up.index(second), across.index(first)] = score
    figure, axes = plt.subplots(figsize=(8.7, 7.3), constrained_layout=True)
    axes.set_facecolor(_EMPTY)
    image = axes.imshow(cells, cmap="cividis", origin="lower", aspect="equal")
    middle = (np.nanmin(cells) + np.nanmax(cells)) / 2
    for row, column in np.argwhere(~np.isnan(cells)):
        score = cells[row, column]
        colour = "white" if score <= middle else "black"
        axes.text(column, row, f"{score:.3f}", ha="center", va="center", color=colour, size=9)
    row, column = np.unravel_index(np.nanargmax(cells), cells.shape)
    axes.add_patch(patches.Rectangle((column - 0.47, row - 0.47), 0.94, 0.94, **_BEST))
    names = dict.fromkeys(name for trial in trials for name in trial.values)
    others = [name for name in names if name not in ("thresholds", "epochs")]
    note = f"\n(best over {', '.join(others)})" if others else ""
    axes.set(title=f"{objective} by thresholds{note}")
    axes.set(xlabel="θ$_1$ (lower threshold)", ylabel="θ$_2$ (upper threshold)")
    axes.set_xticks(range(len(across)), [f"{level:g}" for level in across])
    axes.set_yticks(range(len(up)), [f"{level:g}" for level in up])
    axes.spines[:].set_visible(False)
    figure.colorbar(image, label=f"validation {objective}", shrink=0.85)
    save_png(figure, path)
    return True


@dataclasses.dataclass(frozen=True)
class Tuning:
    """The outcome of a search; `print` shows its trials as a table.

    Attributes:
        best: Keywords of the best trial: `train(..., **best)` trains what it trained.
        score: Its metric.
        metric: The metric that chose it, on validation queries.
        trials: All trials, the best first, each with `values`, `metrics`, `seconds` and more.
    """

    best: dict[str, Any]
    score: float
    metric: str
    trials: list[TrialResult]

    def __str__(self) -> str:
        return markdown_table(*trial_table(self.trials, self.metric))
