"""A search from settings to tables: checks, opens the directory, runs the trials, reports them."""

from __future__ import annotations

from pathlib import Path

import keras_tuner
from absl import logging

from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import Search
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.training.tasks import check_model
from tf_smoothclir.tuning.oracles import ORACLES, DurableOracle
from tf_smoothclir.tuning.search_directory import ORACLE_STATE, only_search, open_search
from tf_smoothclir.tuning.search_space import count_combinations, search_space
from tf_smoothclir.tuning.trial_results import TrialResult, trial_results, write_trial_results
from tf_smoothclir.tuning.tuner import TrialTuner, tokenized_sets


def tune(
    settings: RunSettings, search: Search, output_dir: str | Path, *, overwrite: bool = False
) -> list[TrialResult]:
    """Searches, or continues the search in a directory, and writes its tables."""
    if "tower" not in search.tune:  # the trials of a process all have the same threads
        choose_intraop_threads(settings)
    _oracle(settings, search, Path())  # raises its errors before anything is deleted
    if "loss" not in search.tune:
        check_model(settings)
    sets = tokenized_sets(settings, search.folds)
    output_dir = make_directory(output_dir, "--output_dir")
    with only_search(output_dir):
        open_search(output_dir, settings, search, overwrite)
        oracle = _oracle(settings, search, output_dir / ORACLE_STATE)
        _mention_cut_grid(oracle, search)
        try:
            TrialTuner(oracle, settings, sets, output_dir).search()
        except keras_tuner.errors.FatalError as error:
            raise error.__cause__ or error from None
        trials = trial_results(oracle)
        write_trial_results(output_dir, trials, settings, folds=search.folds)
    return trials


def _oracle(settings: RunSettings, search: Search, path: Path) -> DurableOracle:
    more = {"max_epochs": settings.training.epochs} if search.search == "hyperband" else {}
    return ORACLES[search.search](
        search_space(search.tune, settings),
        path,
        objective=settings.training.select_metric,
        max_trials=search.max_trials,
        seed=settings.training.seed,
        **more,
    )


def _mention_cut_grid(oracle: DurableOracle, search: Search) -> None:
    most = search.max_trials
    if search.search == "grid" and count_combinations(oracle.get_space(), most + 1) > most:
        logging.info(
            "--max_trials=%d leaves out the end of the grid. Raise it, or spread the trials with"
            " --search=random or --search=bayesian",
            most,
        )
