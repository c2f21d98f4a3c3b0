"""Several workers: keras-tuner's chief, which gives the trial of a dead worker out again.

The chief owns the oracle; workers ask it for trials over gRPC (KERASTUNER_TUNER_ID,
KERASTUNER_ORACLE_IP, KERASTUNER_ORACLE_PORT). All see the same output directory.
"""

from __future__ import annotations

import collections
import logging as standard_logging
import multiprocessing
import os
import sys
import threading
import time
from collections.abc import Callable
from concurrent import futures
from multiprocessing import connection

import grpc
from absl import logging
from keras_tuner.src import protos
from keras_tuner.src.distribute import oracle_chief

from tf_smoothclir.tuning.oracles import DurableOracle
from tf_smoothclir.utils.errors import InputError, input_error

_POLL_SECONDS = 0.2
_MOST_DEATHS = 3  # of workers at one trial, or at none


class Chief:
    """Answers workers until every trial has ended. keras-tuner's own waits for the dead."""

    def __init__(self, oracle: DurableOracle, address: str):
        """Listens at `ip:port`; port 0 takes a free one.

        Raises:
            InputError: The address cannot be listened at.
        """
        self._oracle = oracle
        self._servicer = oracle_chief.OracleServicer(oracle)
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=1))
        protos.get_service_grpc().add_OracleServicer_to_server(self._servicer, self._server)
        try:
            self.port = self._server.add_insecure_port(address)
        except RuntimeError as error:
            raise input_error(
                f"KERASTUNER_ORACLE_IP, KERASTUNER_ORACLE_PORT: {address}",
                "this address cannot be listened at",
                "Choose another port; it must be an address of this machine",
            ) from error
        self._server.start()

    def serve(self, worker_timeout: float) -> None:
        """Serves workers that others have started; each is told to stop at the end.

        Args:
            worker_timeout: Seconds of silence after which a worker counts as dead.
        """
        oracle = self._oracle
        while not (self._servicer.stop_triggered and not oracle.tuner_ids):
            time.sleep(_POLL_SECONDS)
            for tuner_id in oracle.release_silent(worker_timeout):
                logging.warning("Worker %s is silent; its trial will be given out again", tuner_id)
        self.stop()

    def stop(self) -> None:
        """Ends the service, after the answers that are under way."""
        self._server.stop(grace=1).wait()


def run_local_workers(oracle: DurableOracle, number: int, work: Callable, *arguments) -> None:
    """Runs a chief here and workers in processes of their own; replaces those that are killed.

    Args:
        oracle: What they work for.
        number: How many workers.
        work: Function of a module that does the work of a worker.
        *arguments: Its arguments.

    Raises:
        InputError: A worker failed, or one trial after the other killed its worker.
    """
    chief = Chief(oracle, "127.0.0.1:0")
    deaths = collections.Counter()
    workers = {f"worker{i}": None for i in range(number)}
    try:
        for tuner_id in workers:
            workers[tuner_id] = _start(tuner_id, chief.port, work, arguments)
        while workers:
            connection.wait([process.sentinel for process in workers.values()])
            for tuner_id, process in list(workers.items()):
                if process.exitcode is None:
                    continue
                del workers[tuner_id]
                if process.exitcode:
                    _count_death(oracle, tuner_id, process.exitcode, deaths)
                    workers[tuner_id] = _start(tuner_id, chief.port, work, arguments)
    finally:
        for process in filter(None, workers.values()):
            process.terminate()
        for process in filter(None, workers.values()):
            process.join()
        chief.stop()


def _count_death(oracle: DurableOracle, tuner_id: str, exit_code: int, deaths) -> None:
    """Gives the trial of a worker back.

    Raises:
        InputError: A new worker would fare no better.
    """
    if exit_code > 0:
        raise input_error(
            "--workers",
            f"{tuner_id} failed with exit code {exit_code}",
            "Its message is above; the same command continues",
        )
    trial_id = oracle.release(tuner_id)
    trial = f"trial {trial_id}" if trial_id else "no trial"
    deaths[trial_id] += 1
    if deaths[trial_id] == _MOST_DEATHS:
        raise input_error(
            "--workers",
            f"{tuner_id}, at {trial}, is the {_MOST_DEATHS}rd worker killed there ({exit_code})",
            "Memory may be short: give fewer workers; the same command continues",
        )
    logging.warning("%s, at %s, was killed (%d); another goes on", tuner_id, trial, exit_code)


def _start(tuner_id: str, port: int, work: Callable, arguments):
    # Not a fork: TensorFlow does not survive one.
    context = multiprocessing.get_context("spawn")
    verbosity = logging.get_verbosity()
    process = context.Process(
        target=_worker, args=(tuner_id, port, verbosity, work, arguments), name=tuner_id
    )
    process.start()
    return process


def _worker(tuner_id: str, port: int, verbosity: int, work: Callable, arguments) -> None:
    """The main function of a worker process."""
    os.environ.update(
        KERASTUNER_TUNER_ID=tuner_id,
        KERASTUNER_ORACLE_IP="127.0.0.1",
        KERASTUNER_ORACLE_PORT=str(port),
    )
    logging.use_absl_handler()
    logging.get_absl_handler().python_handler.setFormatter(standard_logging.Formatter())
    logging.set_verbosity(min(verbosity, logging.WARNING))  # the chief tells of the trials
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        work(*arguments)
    except InputError as error:
        sys.exit(f"{tuner_id}: error: {error}")


def _end_with_parent() -> None:
    """Ends this process at once when its parent is gone, lest two write to one trial."""
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
