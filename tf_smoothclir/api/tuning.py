"""Tuning from Python: what `smoothclir-tune` does, and a hypermodel for keras-tuner itself."""

import functools
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras_tuner
from tensorflow import keras

from tf_smoothclir._compat.quiet import without_retracing_warnings
from tf_smoothclir.api.given import strings, whole_number
from tf_smoothclir.api.sets import PARTS, Data
from tf_smoothclir.api.settings import run_settings, settings_with_data, with_objects
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import Search
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.tasks import load_model
from tf_smoothclir.training.trainer import Interrupted
from tf_smoothclir.tuning.search_directory import Tuning
from tf_smoothclir.tuning.search_space import declare, search_space, setting_values, with_values
from tf_smoothclir.tuning.tune import tune as run_search
from tf_smoothclir.tuning.tuner import tokenized_sets, train_trial
from tf_smoothclir.two_tower.builder import build_model
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
    with tempfile.TemporaryDirectory(prefix="smoothclir-") as temporary:
        directory = Path(
            temporary if output_dir is None else local_path(output_dir, "tune: output_dir")
        )
        fixed, in_memory = settings_with_data(
            "tune", data, preset, given, directory, overwrite, **_rules_of(chosen)
        )
        with progress_shown(progress), without_retracing_warnings():
            try:
                trials = run_search(
                    fixed, chosen, directory, overwrite=overwrite, in_memory=in_memory
                )
            except Interrupted:
                raise KeyboardInterrupt(f"stopped and saved in {directory}") from None
    metric = fixed.training.select_metric
    best = _keywords(preset, given, fixed, setting_values(trials[0].values, fixed))
    return Tuning(best, trials[0].metrics[metric], metric, trials)


def _rules_of(search: Search) -> dict[str, Any]:
    """What is checked of the settings of a search, which its trials change."""
    names = search.tune
    return {"check": functools.partial(search_space, names), "tune": names, "varied": names}


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
    max_trials, folds = whole_number(max_trials, "max_trials"), whole_number(folds, "folds", 0)
    try:
        return Search(tuple(strings(tune, "tune")), search, max_trials, folds)
    except ValueError as error:
        raise InputError(str(error)) from error


class HyperModel(keras_tuner.HyperModel):
    """Two towers for keras-tuner's tuners: `build` declares what is searched, `fit` trains.

    ```python
    hypermodel = sc.HyperModel("data", tune=["epsilon"], epochs=5)
    objective = keras_tuner.Objective("NDCG@5", "max")
    tuner = keras_tuner.RandomSearch(hypermodel, objective=objective, max_trials=5)
    tuner.search()
    ```

    `fit` trains as `sc.train` does, on data of its own, and reports the seven metrics of the
    validation queries, of the epoch with the best `select_metric`. The objective is one of them.
    """

    def __init__(
        self,
        data: Data | None = None,
        *,
        preset: str = "",
        tune: Sequence[str] = Search.tune,
        **given: Any,
    ):
        """Checks the settings and opens the data; all arguments are as for `tune`.

        Raises:
            InputError: An argument, a setting or the data cannot be used.
        """
        super().__init__()
        self._held = tempfile.TemporaryDirectory(prefix="smoothclir-")
        search = _search(tune, Search.search, Search.max_trials, Search.folds)
        self._names, directory = search.tune, Path(self._held.name)
        self._settings, self._in_memory = settings_with_data(
            "HyperModel", data, preset, given, directory, **_rules_of(search)
        )

    def build(self, hp: keras_tuner.HyperParameters) -> keras.Model:
        """Declares the searched settings; returns an untrained model with the values of a trial."""
        declare(hp, self._names, self._settings)
        vocabularies = {role: self._tokenized_set.vocabulary(role) for role in ROLES}
        return build_model(self._with(hp), vocabularies)

    def fit(
        self,
        hp: keras_tuner.HyperParameters,
        model: keras.Model,
        *,
        callbacks: Sequence[keras.callbacks.Callback] = (),
        epochs: int = 0,
        initial_epoch: int = 0,
        verbose: Any = "auto",
    ) -> dict[str, float]:
        """Trains a model that `build` returned; leaves the weights of its best epoch in it.

        Args:
            hp: The values of the trial.
            model: The model.
            callbacks: Of the tuner; they see one epoch, the best one.
            epochs: 0 for those of the settings; a Hyperband tuner decides them.
            initial_epoch: Has no effect: training begins from the start.
            verbose: Has no effect.

        Returns:
            Metric -> value on validation queries.
        """
        settings = self._with(hp)
        if epochs:
            settings = changed(settings, {"epochs": epochs})
        with tempfile.TemporaryDirectory(dir=self._held.name) as directory:
            path = Path(directory)
            with without_retracing_warnings():
                trained = train_trial(settings, self._tokenized_set, path / "run", path / "logs")
            if not trained["diverged"]:
                model.set_weights(load_model(RunDirectory(path / "run")).get_weights())
        metrics = trained["validation"]
        told = keras.callbacks.CallbackList(list(callbacks), model=model)
        told.on_train_begin()
        told.on_epoch_begin(0)
        told.on_epoch_end(0, metrics)
        told.on_train_end()
        return metrics

    def _with(self, hp: keras_tuner.HyperParameters) -> RunSettings:
        values = {name: hp.get(name) for name in self._names if name in hp and hp.is_active(name)}
        return with_values(self._settings, values)

    @functools.cached_property
    def _tokenized_set(self) -> TokenizedSet:
        return tokenized_sets(self._settings, 0, self._in_memory)[0]
