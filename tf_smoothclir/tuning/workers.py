"""Tuner workers in processes of their own, which ask keras-tuner's chief for trials."""

from __future__ import annotations

import collections
import contextlib
import logging as standard_logging
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator

from absl import logging
from keras_tuner.engine.base_tuner import BaseTuner

from tf_smoothclir import plugins
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.processes import process_group

# keras-tuner reads these; they also join workers on other machines to a chief.
ENVIRONMENT = ("KERASTUNER_TUNER_ID", "KERASTUNER_ORACLE_IP", "KERASTUNER_ORACLE_PORT")
_MOST_DEATHS = 3  # of one tuner worker
_REMEDY = "the same command continues the search"


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
    make_chief: Callable[[], BaseTuner], number: int, work: Callable, *arguments
) -> None:
    """Runs a chief in a thread, and workers; a killed one is replaced and gets its trial again."""
    deaths, modules = collections.Counter(), plugins.loaded()
    # As in any chief, keras-tuner prints conditions of the space.
    with contextlib.redirect_stdout(None), _chief_environment(), process_group() as running:
        # The chief waits for the workers up to 20 s longer than needed, so nobody waits for it.
        threading.Thread(target=make_chief().search, daemon=True).start()
        for index in range(number):
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
