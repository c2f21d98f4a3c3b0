"""A search from settings to results: check, take up or begin, run the trials, write the tables."""

from __future__ import annotations

import dataclasses
import json
import os
import time
from pathlib import Path

import keras_tuner
from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.ops.threads import choose_threads
from tf_smoothclir.settings.run import WITHOUT_EFFECT, RunSettings
from tf_smoothclir.tuning import chief as workers
from tf_smoothclir.tuning import oracles
from tf_smoothclir.tuning import trial_results as results
from tf_smoothclir.tuning.search_space import SearchSpace
from tf_smoothclir.tuning.tuner import LOGS, TRIALS, TrialTuner, tokenized_sets
from tf_smoothclir.two_tower.builder import check_towers, configured_loss
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import (
    delete_in,
    locked,
    make_directory,
    names_in,
    read_json,
    write_json,
)

SEARCHES = {
    "grid": oracles.GridOracle,
    "random": oracles.RandomOracle,
    "bayesian": oracles.BayesianOracle,
    "hyperband": oracles.HyperbandOracle,
}
_SECONDS_BETWEEN_LOOKS = 0.5
_STATE, _SETTINGS, _LOCK = "oracle.json", "tuning.json", ".lock"
# In the order in which --overwrite deletes them.
_PARTS = (
    "best.flags",
    "best.json",
    "trials.csv",
    "trials.md",
    *results.HEAT_MAP,
    _STATE,
    f"{_STATE}.damaged",
    TRIALS,
    LOGS,
    _SETTINGS,
)


@dataclasses.dataclass(frozen=True)
class Search:
    """How to search.

    Attributes:
        search: Of `SEARCHES`.
        tune: The settings that are searched.
        max_trials: Most trials. More of them continue a search that had fewer.
        folds: Folds of cross-validation; 0 or 1 for the set's own validation split.
    """

    search: str = "grid"
    tune: tuple[str, ...] = ("thresholds",)
    max_trials: int = 36
    folds: int = 0


def tune(
    settings: RunSettings,
    search: Search,
    output_dir: str | Path,
    *,
    num_workers: int = 1,
    worker_timeout: float = 300.0,
    overwrite: bool = False,
) -> list[results.TrialResult]:
    """Searches, or goes on with the search that is in a directory, and writes its results.

    With keras-tuner's environment (KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and _PORT) this is the
    chief, or a worker that runs trials until there are no more.

    Args:
        settings: The fixed part; `select_metric` is the objective.
        search: How to search.
        output_dir: Gets everything; chief and workers share it.
        num_workers: Processes on this machine.
        worker_timeout: Seconds after which a chief gives the trial of a silent worker out again.
        overwrite: Deletes the search that is there.

    Returns:
        The trials, best first; none for a worker.

    Raises:
        InputError: The settings, the data or the directory cannot be used.
    """
    _choose_threads(settings, search)
    space = SearchSpace.of(search.tune, settings)
    role = _role()
    _check_fixed(settings, search)
    if role == "worker":
        _check_joins(Path(output_dir), settings, search, worker_timeout)
        run_worker(settings, search, Path(output_dir), worker_timeout)
        return []
    sets = tokenized_sets(settings, search.folds)
    output_dir = make_directory(output_dir, "--output_dir")
    _oracle(space, settings, search, Path())  # shows, before anything is deleted, whether it fits
    with _only_one(output_dir):
        _open_directory(output_dir, settings, search, overwrite)
        oracle = _oracle(space, settings, search, output_dir / _STATE)
        _mention_cut_grid(space, search)
        if role == "chief":
            address = "{KERASTUNER_ORACLE_IP}:{KERASTUNER_ORACLE_PORT}".format(**os.environ)
            workers.Chief(oracle, address).serve(worker_timeout)
        elif num_workers > 1:
            del sets  # each worker has its own, from the cache
            arguments = (settings, search, output_dir, worker_timeout)
            workers.run_local_workers(oracle, num_workers, run_worker, *arguments)
        else:
            _run_trials(TrialTuner(oracle, settings, sets, output_dir))
        found = results.trial_results(oracle)
        results.write_results(output_dir, found, settings, folds=search.folds)
    return found


def run_worker(
    settings: RunSettings, search: Search, output_dir: Path, worker_timeout: float
) -> None:
    """Runs trials for the chief that the environment names."""
    _choose_threads(settings, search)
    sets = tokenized_sets(settings, search.folds)
    # keras-tuner wants an oracle here as well, and asks it for the objective only.
    oracle = keras_tuner.Oracle(_objective(settings))
    heartbeat = worker_timeout / 5
    _run_trials(TrialTuner(oracle, settings, sets, output_dir, heartbeat_seconds=heartbeat))


def _choose_threads(settings: RunSettings, search: Search) -> None:
    if "tower" not in search.tune:  # all trials of a process have the same threads
        choose_threads(settings)


def _run_trials(tuner: TrialTuner) -> None:
    try:
        tuner.search()
    except keras_tuner.errors.FatalError as error:
        raise error.__cause__ or error from None


def _role() -> str:
    """Returns "chief", "worker", or "" for one alone.

    Raises:
        InputError: keras-tuner's environment is incomplete.
    """
    names = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
    if names[1] not in os.environ:
        return ""
    missing = [name for name in names if not os.environ.get(name)]
    if missing:
        raise input_error(
            "KERASTUNER_ORACLE_IP is set",
            f"but {', '.join(missing)} not",
            "Set all three, or none to search with this process alone",
        )
    return "chief" if "chief" in os.environ["KERASTUNER_TUNER_ID"] else "worker"


def _objective(settings: RunSettings) -> keras_tuner.Objective:
    return keras_tuner.Objective(settings.training.select_metric, "max")


def _oracle(space, settings, search, path: Path) -> oracles.DurableOracle:
    more = {"max_epochs": settings.training.epochs} if search.search == "hyperband" else {}
    return SEARCHES[search.search](
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
            "--max_trials=%d is less than the %d points of the grid: its end is left out. Raise it,"
            " or spread the trials with --search=random or bayesian",
            search.max_trials,
            len(space.points),
        )


def _only_one(output_dir: Path):
    """Keeps other searches out of the directory."""
    return locked(
        output_dir / _LOCK,
        f"--output_dir={output_dir}",
        "another smoothclir-tune is at work there",
        "Wait for it, or choose another directory; --workers=2 runs two trials at a time",
    )


def _open_directory(
    output_dir: Path, settings: RunSettings, search: Search, overwrite: bool
) -> None:
    """Notes what is searched, or checks that it is what the directory has.

    Raises:
        InputError: It holds another search, or something else.
    """
    path = output_dir / _SETTINGS
    if overwrite and path.is_file():
        delete_in(output_dir, _PARTS)
    content = _content(settings, search)
    if path.is_file():
        _check_same(output_dir, read_json(path), content)
    elif others := names_in(output_dir) - {_LOCK}:
        raise input_error(
            f"--output_dir={output_dir}",
            f"it holds no search, but {', '.join(sorted(others)[:3])}",
            "Choose another directory",
        )
    write_json(path, content)


def _content(settings: RunSettings, search: Search) -> dict:
    """Returns what decides about the trials."""
    return {
        "search": {**dataclasses.asdict(search), "tune": list(search.tune)},
        "settings": _json_settings(settings),
        "data": source_of(settings.data).fingerprint(),
    }


def _check_fixed(settings: RunSettings, search: Search) -> None:
    """Checks what is not searched, before anything is written."""
    if "loss" not in search.tune:
        configured_loss(settings)
    if "tower" not in search.tune:
        check_towers(settings)


def _check_joins(
    output_dir: Path, settings: RunSettings, search: Search, seconds_to_wait: float
) -> None:
    """Checks that a worker searches what its chief does, who may begin a little later."""
    path, end = output_dir / _SETTINGS, time.monotonic() + seconds_to_wait
    while not path.is_file():
        if time.monotonic() > end:
            raise input_error(
                f"--output_dir={output_dir}",
                "there is no search of a chief",
                "Let chief and workers share the directory",
            )
        time.sleep(_SECONDS_BETWEEN_LOOKS)
    _check_same(output_dir, read_json(path), _content(settings, search))


def _json_settings(settings: RunSettings) -> dict:
    """Returns settings as they come back from JSON, where tuples are lists."""
    return json.loads(json.dumps(dataclasses.asdict(settings)))


def _check_same(output_dir: Path, there: dict, here: dict) -> None:
    differences = [
        f"--{name}: {there['search'][name]} there, {value} here"
        for name, value in here["search"].items()
        if there["search"][name] != value and name != "max_trials"
    ]
    differences += [
        f"--{name}: {there['settings'][group][name]} there, {value} here"
        for group, values in here["settings"].items()
        for name, value in values.items()
        if there["settings"][group][name] != value and name not in WITHOUT_EFFECT
    ]
    if there["data"] != here["data"]:
        differences.append("other content of the data")
    if differences:
        raise InputError(
            f"--output_dir={output_dir}: it holds a search with other settings"
            f" ({'; '.join(differences)}). Give the same flags to continue it, choose another"
            " directory, or give --overwrite."
        )
