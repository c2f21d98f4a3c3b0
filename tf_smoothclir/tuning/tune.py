"""A search from settings to tables: checks, directory, trials (by worker processes too), report."""

import collections
import contextlib
import logging as standard_logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import keras_tuner
from absl import logging
from keras_tuner.engine.base_tuner import BaseTuner

from tf_smoothclir import plugins
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import Search
from tf_smoothclir.storage.files import make_directory
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.tasks import check_model
from tf_smoothclir.tuning import search_directory
from tf_smoothclir.tuning.oracles import ORACLES, DurableOracle
from tf_smoothclir.tuning.search_space import count_combinations, search_space
from tf_smoothclir.tuning.tuner import TrialTuner, tokenized_sets
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.processes import process_group

# keras-tuner reads these; they also join workers on other machines to a chief.
ENVIRONMENT = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
_MOST_DEATHS = 3  # of one tuner worker
_REMEDY = "the same command continues the search"


def tune(
    settings: RunSettings,
    search: Search,
    output_dir: str | Path,
    *,
    num_workers: int = 1,
    overwrite: bool = False,
    in_memory: MemorySource | None = None,
) -> list[search_directory.TrialResult]:
    """Searches, or continues the search in a directory, and writes its tables.

    A set in memory is written there, at `settings.data.data_dir`.
    """
    # In keras-tuner's environment this process is the chief, or a tuner worker, which runs trials
    # until none is left.
    if settings.training.init_from:
        reason = "the trials of a search begin anew"
        raise input_error("--init_from", reason, "Leave it out, and continue the run with train")
    _choose_threads(settings, search)
    oracle = _oracle(settings, search, Path())  # raises its errors before anything is deleted
    if "loss" not in search.tune:
        check_model(settings)
    own_role = role()
    if own_role == "worker":
        search_directory.open_search(Path(output_dir), settings, search)
        run_worker(settings, search, Path(output_dir))
        return []
    sets = tokenized_sets(settings, search.folds, in_memory)
    output_dir = make_directory(output_dir, "--output_dir")
    with search_directory.only_search(output_dir):
        if in_memory is not None:
            in_memory.keep(RunDirectory(output_dir).data, overwrite=overwrite)
        search_directory.open_search(output_dir, settings, search, overwrite)
        oracle = _oracle(settings, search, output_dir / search_directory.ORACLE_STATE)
        most = search.max_trials
        if search.search == "grid" and count_combinations(oracle.get_space(), most + 1) > most:
            logging.info(
                "--max_trials=%d leaves out the end of the grid. Raise it, or spread the trials"
                " with --search=random or --search=bayesian",
                most,
            )
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
        trials = search_directory.trial_results(oracle)
        search_directory.write_trial_results(output_dir, trials, settings, folds=search.folds)
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


def role() -> str:
    """ "chief", "worker", or "" outside keras-tuner's environment."""
    missing = [name for name in ENVIRONMENT if not os.environ.get(name)]
    if len(missing) == len(ENVIRONMENT):
        return ""
    if missing:
        reason = f"{' and '.join(missing)} is missing"
        remedy = f"Set {', '.join(ENVIRONMENT)}, or none to search in this process alone"
        raise input_error("keras-tuner's environment", reason, remedy)
    return "chief" if "chief" in os.environ[ENVIRONMENT[0]] else "worker"


def run_local_workers(
    make_chief: Callable[[], BaseTuner], num_workers: int, work: Callable, *arguments
) -> None:
    """Runs a chief in a thread, and workers; a killed one is replaced and gets its trial again."""
    deaths, modules = collections.Counter(), plugins.loaded()
    # As in any chief, keras-tuner prints conditions of the space.
    with contextlib.redirect_stdout(None), _chief_environment(), process_group() as running:
        # The chief waits for the workers up to 20 s longer than needed, so nobody waits for it.
        threading.Thread(target=make_chief().search, daemon=True).start()
        for index in range(num_workers):
            running.start(f"worker{index}", _work, f"worker{index}", modules, work, arguments)
        while running:
            for worker, exit_code in running.wait():
                if exit_code > 0:
                    reason = f"{worker} failed with exit code {exit_code}"
                    raise input_error("--workers", reason, f"See its message above; {_REMEDY}")
                if exit_code:
                    deaths[worker] += 1
                    if deaths[worker] == _MOST_DEATHS:
                        reason = f"{worker} was killed {_MOST_DEATHS} times ({exit_code})"
                        remedy = f"If memory ran out, use fewer workers; {_REMEDY}"
                        raise input_error("--workers", reason, remedy)
                    logging.warning("%s was killed (%d); it starts again", worker, exit_code)
                    running.start(worker, _work, worker, modules, work, arguments)


@contextlib.contextmanager
def _chief_environment() -> Iterator[None]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    os.environ.update(zip(ENVIRONMENT, ("chief", "127.0.0.1", str(port))))
    try:
        yield
    finally:
        for name in ENVIRONMENT:
            del os.environ[name]


def _work(worker: str, modules: list[str], work: Callable, arguments: tuple) -> None:
    """The main function of a tuner worker's process."""
    os.environ[ENVIRONMENT[0]] = worker
    logging.use_absl_handler()
    logging.get_absl_handler().python_handler.setFormatter(standard_logging.Formatter())
    logging.set_verbosity(min(logging.get_verbosity(), logging.WARNING))  # the chief reports
    try:
        plugins.load(modules)
        work(*arguments)
    except InputError as error:
        sys.exit(f"{worker}: error: {error}")
