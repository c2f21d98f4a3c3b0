"""Several tuner workers and their chief, which hands the trial of a dead worker out again.

The chief owns the oracle. Tuner workers ask it for trials over gRPC, at the address that
KERASTUNER_TUNER_ID, KERASTUNER_ORACLE_IP and KERASTUNER_ORACLE_PORT give. All of them share the
output directory.
"""

from __future__ import annotations

import collections
import logging as standard_logging
import os
import sys
import time
from collections.abc import Callable
from concurrent import futures

import grpc
from absl import logging
from keras_tuner.src import protos
from keras_tuner.src.distribute import oracle_chief

from tf_smoothclir.tuning.oracles import DurableOracle
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.processes import ProcessGroup, process_group

_POLL_SECONDS = 0.2
_MOST_DEATHS = 3  # of tuner workers at one trial, or between trials


class Chief:
    """Serves trials until all have ended; unlike keras-tuner's chief, waits for no dead worker."""

    def __init__(self, oracle: DurableOracle, address: str):
        self._oracle = oracle
        self._servicer = oracle_chief.OracleServicer(oracle)
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
        protos.get_service_grpc().add_OracleServicer_to_server(self._servicer, self._server)
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise input_error(
                f"KERASTUNER_ORACLE_IP, KERASTUNER_ORACLE_PORT: {address}",
                "the chief cannot listen at this address",
                "Use an address of this machine and a free port",
            ) from error
        self._server.start()

    def serve(self, worker_timeout: float) -> None:
        """Serves tuner workers that were started elsewhere, and tells each to stop at the end."""
        oracle = self._oracle
        while not (self._servicer.stop_triggered and not oracle.tuner_ids):
            time.sleep(_POLL_SECONDS)
            for tuner_id in oracle.release_silent(worker_timeout):
                logging.warning("Tuner worker %s is silent; another gets its trial", tuner_id)
        self.stop()

    def stop(self) -> None:
        """Stops serving, once the pending answers are sent."""
        self._server.stop(grace=1).wait()


def run_local_workers(oracle: DurableOracle, number: int, work: Callable, *arguments) -> None:
    """Runs a chief here and tuner workers in processes of their own; replaces killed ones."""
    chief = Chief(oracle, "127.0.0.1:0")
    deaths = collections.Counter()
    try:
        with process_group() as running:
            for index in range(number):
                _start(running, f"worker{index}", chief.port, work, arguments)
            while running:
                for tuner_id, exit_code in running.wait():
                    if exit_code:
                        _count_death(oracle, tuner_id, exit_code, deaths)
                        _start(running, tuner_id, chief.port, work, arguments)
    finally:
        chief.stop()


def _count_death(oracle: DurableOracle, tuner_id: str, exit_code: int, deaths) -> None:
    """Releases the trial of a killed tuner worker."""
    if exit_code > 0:
        raise input_error(
            "--workers",
            f"{tuner_id} failed with exit code {exit_code}",
            "See its message above; the same command continues the search",
        )
    trial_id = oracle.release(tuner_id)
    place = f"at trial {trial_id}" if trial_id else "between trials"
    deaths[trial_id] += 1
    if deaths[trial_id] == _MOST_DEATHS:
        raise input_error(
            "--workers",
            f"{_MOST_DEATHS} tuner workers were killed {place}, last {tuner_id} ({exit_code})",
            "If memory ran out, use fewer workers; the same command continues the search",
        )
    logging.warning("%s was killed %s (%d); another one takes over", tuner_id, place, exit_code)


def _start(running: ProcessGroup, tuner_id: str, port: int, work: Callable, arguments) -> None:
    running.start(tuner_id, _work, tuner_id, port, logging.get_verbosity(), work, arguments)


def _work(tuner_id: str, port: int, verbosity: int, work: Callable, arguments) -> None:
    """The main function of a tuner worker's process."""
    os.environ.update(
        KERASTUNER_TUNER_ID=tuner_id,
        KERASTUNER_ORACLE_IP="127.0.0.1",
        KERASTUNER_ORACLE_PORT=str(port),
    )
    logging.use_absl_handler()
    logging.get_absl_handler().python_handler.setFormatter(standard_logging.Formatter())
    logging.set_verbosity(min(verbosity, logging.WARNING))  # the chief reports the trials
    try:
        work(*arguments)
    except InputError as error:
        sys.exit(f"{tuner_id}: error: {error}")
