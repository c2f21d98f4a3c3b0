"""A search from settings to tables: checks, opens the directory, runs the trials, reports them."""

from __future__ import annotations

import contextlib
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
from tf_smoothclir.tuning.workers import role, run_local_workers


def tune(
    settings: RunSettings,
    search: Search,
    output_dir: str | Path,
    *,
    num_workers: int = 1,
    overwrite: bool = False,
) -> list[TrialResult]:
    """Searches, or continues the search in a directory, and writes its tables.

    In keras-tuner's environment this process is the chief, or a tuner worker, which runs trials
    until there are no more.
    """
    _choose_threads(settings, search)
    oracle = _oracle(settings, search, Path())  # raises its errors before anything is deleted
    if "loss" not in search.tune:
        check_model(settings)
    own_role = role()
    if own_role == "worker":
        open_search(Path(output_dir), settings, search)
        run_worker(settings, search, Path(output_dir))
        return []
    sets = tokenized_sets(settings, search.folds)
    output_dir = make_directory(output_dir, "--output_dir")
    with only_search(output_dir):
        open_search(output_dir, settings, search, overwrite)
        oracle = _oracle(settings, search, output_dir / ORACLE_STATE)
        _mention_cut_grid(oracle, search)
        if num_workers > 1 and not own_role:
            sets = []  # each tuner worker loads them from the cache
            run_local_workers(
                lambda: TrialTuner(oracle, settings, sets, output_dir),
                num_workers,
                run_worker,
                *(settings, search, output_dir),
            )
        else:
            _run_trials(TrialTuner(oracle, settings, sets, output_dir))
        trials = trial_results(oracle)
        write_trial_results(output_dir, trials, settings, folds=search.folds)
    return trials


def run_worker(settings: RunSettings, search: Search, output_dir: Path) -> None:
    """Runs trials for the chief that the environment names."""
    _choose_threads(settings, search)
    sets = tokenized_sets(settings, search.folds)
    oracle = _oracle(settings, search, Path())  # keras-tuner asks it only for the objective
    _run_trials(TrialTuner(oracle, settings, sets, output_dir))


def _choose_threads(settings: RunSettings, search: Search) -> None:
    if "tower" not in search.tune:  # the trials of a process all have the same threads
        choose_intraop_threads(settings)


def _run_trials(tuner: TrialTuner) -> None:
    silent = contextlib.redirect_stdout(None) if role() else contextlib.nullcontext()
    try:
        with silent:  # keras-tuner's chief and workers print conditions of the space
            tuner.search()
    except keras_tuner.errors.FatalError as error:
        raise error.__cause__ or error from None


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
