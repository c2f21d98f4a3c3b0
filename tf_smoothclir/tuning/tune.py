"""A search from settings to tables: checks, opens the directory, runs the trials, reports them."""

from __future__ import annotations

import os
from pathlib import Path

import keras_tuner
from absl import logging

from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.settings.combinations import check_combinations
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.tasks import check_model
from tf_smoothclir.tuning import oracles
from tf_smoothclir.tuning.chief import Chief, run_local_workers
from tf_smoothclir.tuning.search_directory import (
    ORACLE_STATE,
    Search,
    SearchRecord,
    check_joins,
    only_search,
    open_search,
)
from tf_smoothclir.tuning.search_space import SearchSpace
from tf_smoothclir.tuning.trial_results import TrialResult, trial_results, write_trial_results
from tf_smoothclir.tuning.tuner import TrialTuner, tokenized_sets
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import make_directory

ORACLES = {
    "grid": oracles.GridOracle,
    "random": oracles.RandomOracle,
    "bayesian": oracles.BayesianOracle,
    "hyperband": oracles.HyperbandOracle,
}


def tune(
    settings: RunSettings,
    search: Search,
    output_dir: str | Path,
    *,
    num_workers: int = 1,
    worker_timeout: float = 300.0,
    overwrite: bool = False,
) -> list[TrialResult]:
    """Searches, or continues the search in a directory, and writes its tables.

    In keras-tuner's environment (KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and _PORT) this process
    is the chief, or a tuner worker, which runs trials until there are no more.
    """
    check_combinations(settings, varied=search.tune, tune=search.tune)
    _choose_threads(settings, search)
    space = SearchSpace.of(search.tune, settings)
    role = _role()
    _check_fixed(settings, search)
    if role == "worker":
        record = SearchRecord.of(settings, search)
        check_joins(Path(output_dir), record, worker_timeout)
        run_worker(settings, search, Path(output_dir), worker_timeout)
        return []
    sets = tokenized_sets(settings, search.folds)
    output_dir = make_directory(output_dir, "--output_dir")
    _oracle(space, settings, search, Path())  # raises its errors before anything is deleted
    with only_search(output_dir):
        open_search(output_dir, SearchRecord.of(settings, search), overwrite)
        oracle = _oracle(space, settings, search, output_dir / ORACLE_STATE)
        _mention_cut_grid(space, search)
        if role == "chief":
            address = "{KERASTUNER_ORACLE_IP}:{KERASTUNER_ORACLE_PORT}".format(**os.environ)
            Chief(oracle, address).serve(worker_timeout)
        elif num_workers > 1:
            del sets  # each tuner worker loads them from the cache
            arguments = (settings, search, output_dir, worker_timeout)
            run_local_workers(oracle, num_workers, run_worker, *arguments)
        else:
            _run_trials(TrialTuner(oracle, settings, sets, output_dir))
        found = trial_results(oracle)
        write_trial_results(output_dir, found, settings, folds=search.folds)
    return found


def run_worker(
    settings: RunSettings, search: Search, output_dir: Path, worker_timeout: float
) -> None:
    """Runs trials for the chief that the environment names."""
    _choose_threads(settings, search)
    sets = tokenized_sets(settings, search.folds)
    # keras-tuner requires an oracle here too, but asks it only for the objective.
    oracle = keras_tuner.Oracle(_objective(settings))
    heartbeat = worker_timeout / 5
    _run_trials(TrialTuner(oracle, settings, sets, output_dir, heartbeat_seconds=heartbeat))


def _choose_threads(settings: RunSettings, search: Search) -> None:
    if "tower" not in search.tune:  # the trials of a process all have the same threads
        choose_intraop_threads(settings)


def _run_trials(tuner: TrialTuner) -> None:
    try:
        tuner.search()
    except keras_tuner.errors.FatalError as error:
        raise error.__cause__ or error from None


def _role() -> str:
    """ "chief", "worker", or "" outside keras-tuner's environment."""
    names = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
    if names[1] not in os.environ:
        return ""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise input_error(
            "KERASTUNER_ORACLE_IP",
            f"it is set without {' and '.join(missing)}",
            "Set all three variables, or none to search in this process alone",
        )
    return "chief" if "chief" in os.environ["KERASTUNER_TUNER_ID"] else "worker"


def _objective(settings: RunSettings) -> keras_tuner.Objective:
    return keras_tuner.Objective(settings.training.select_metric, "max")


def _oracle(space, settings, search, path: Path) -> oracles.DurableOracle:
    more = {"max_epochs": settings.training.epochs} if search.search == "hyperband" else {}
    return ORACLES[search.search](
        space,
        path,
        objective=_objective(settings),
        max_trials=search.max_trials,
        seed=settings.training.seed,
        **more,
    )


def _mention_cut_grid(space: SearchSpace, search: Search) -> None:
    if search.search == "grid" and search.max_trials < len(space.points):
        logging.info(
            "--max_trials=%d leaves out the end of the grid, which has %d points. Raise it, or"
            " spread the trials with --search=random or --search=bayesian",
            search.max_trials,
            len(space.points),
        )


def _check_fixed(settings: RunSettings, search: Search) -> None:
    """Checks the settings that are not searched, before anything is written."""
    if "loss" not in search.tune:
        check_model(settings)
