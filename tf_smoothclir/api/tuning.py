"""Tuning from Python: what `smoothclir-tune` does."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tf_smoothclir._compat.quiet import without_retracing_warnings
from tf_smoothclir.api.sets import PARTS, Data
from tf_smoothclir.api.settings import run_settings, settings_with_data, with_objects
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import Search
from tf_smoothclir.training.trainer import Interrupted
from tf_smoothclir.tuning.search_space import search_space, setting_values
from tf_smoothclir.tuning.trial_results import Tuning
from tf_smoothclir.tuning.tune import tune as run_search
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.paths import PathText, local_path
from tf_smoothclir.utils.progress import progress_shown


def tune(
    data: Data | None = None,
    *,
    preset: str = "",
    tune: Sequence[str] = Search.tune,
    search: str = Search.search,
    max_trials: int = Search.max_trials,
    folds: int = Search.folds,
    output_dir: PathText | None = None,
    overwrite: bool = False,
    progress: bool | None = None,
    **given: Any,
) -> Tuning:
    """Searches settings on the validation queries, as the command `smoothclir-tune` does.

    ```python
    found = sc.tune(queries=queries, documents=documents, judgments=judgments, max_trials=10)
    model = sc.train(queries=queries, documents=documents, judgments=judgments, **found.best)
    ```

    Args:
        data: As for `train`.
        preset: "" trains what has the searched settings, as in "best" where it has them.
        tune: Names of the settings to search; `smoothclir-tune --help` lists them with their
            values. Thresholds rise by construction.
        search: "grid", "random", "bayesian" or "hyperband".
        max_trials: Maximum number of trials.
        folds: Folds of cross-validation; 0 for the validation split.
        output_dir: Gets trials, tables, a heat map of the thresholds and the best model. By
            default a temporary directory, which is deleted at the end.
        overwrite: Deletes the search that is there. Without it, a search with the same settings
            and data continues, with more trials if `max_trials` is larger.
        progress: As for `train`.
        **given: The set, towers, and settings that are not searched, as for `train`.
            `select_metric` ranks trials.

    Raises:
        InputError: An argument, a setting or the data cannot be used.
        KeyboardInterrupt: You stopped it. With the same `output_dir`, the same call continues.
    """
    chosen = _search(tune, search, max_trials, folds)
    check, names = functools.partial(search_space, chosen.tune), chosen.tune
    with tempfile.TemporaryDirectory(prefix="smoothclir-") as temporary:
        directory = Path(temporary if output_dir is None else local_path(output_dir))
        fixed = settings_with_data(
            "tune", data, preset, given, directory, overwrite, check, tune=names, varied=names
        )
        with progress_shown(progress), without_retracing_warnings():
            try:
                trials = run_search(fixed, chosen, directory, overwrite=overwrite)
            except Interrupted:
                raise KeyboardInterrupt(f"stopped and saved in {directory}") from None
    metric = fixed.training.select_metric
    best = _keywords(preset, given, fixed, setting_values(trials[0].values, fixed))
    return Tuning(best, trials[0].metrics[metric], metric, trials)


def _keywords(
    preset: str, given: Mapping[str, Any], fixed: RunSettings, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The keywords of `train` for the settings of a trial, without those of its set."""
    best = {name: value for name, value in {**given, **values}.items() if name not in PARTS}
    trained = run_settings(preset, with_objects("tune", best)).values()
    for name, value in changed(fixed, values).values().items():
        if value != trained[name] and name not in ("data_dir", "thresholds"):
            best[name] = value
    return {**best, "preset": preset} if preset else best


def _search(tune: Sequence[str], search: str, max_trials: int, folds: int) -> Search:
    if isinstance(tune, str):
        raise input_error(f"tune={tune!r}", "it is a string", f"Give a list: tune=[{tune!r}]")
    try:
        return Search(tuple(tune), search, max_trials, folds)
    except ValueError as error:
        raise InputError(str(error)) from error
