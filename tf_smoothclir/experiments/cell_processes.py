"""Working through cells on all cores, a process for each, that may be stopped at any moment."""

from __future__ import annotations

import contextlib
import fcntl
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection

import tensorflow as tf
from absl import logging

from tf_smoothclir.experiments.cells import CellDirectory
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.files import standard_error_in
from tf_smoothclir.utils.progress import progress_bar

_SECONDS_BETWEEN_LOOKS = 0.5


def run_cells(cells: Sequence[CellDirectory], workers: int) -> list[CellDirectory]:
    """Completes cells, `workers` at a time, each with its share of the cores.

    A process for each cell: what one leaves in memory, or its crash, is nothing to the others.
    SIGINT and SIGTERM save and stop those that run. The output of each goes to its log.

    Args:
        cells: Finished ones and repetitions take no time.
        workers: Number of processes.

    Returns:
        Those that failed.
    """
    by_name = {cell.cell.name: cell for cell in cells}
    todo = [cell for cell in by_name.values() if not cell.finished]
    if not todo:
        return []
    threads = max(1, (os.cpu_count() or 1) // workers)
    title = f"{len(todo)} of {len(by_name)} cells"
    with progress_bar(len(todo), title, "cells") as bar, _running_processes() as running:
        waiting = iter(todo)
        while True:
            for cell in waiting:
                running[_start(cell, threads)] = cell
                if len(running) == workers:
                    break
            if not running:
                break
            bar.set_postfix_str(", ".join(cell.cell.name for cell in running.values()))
            for process in _ended(list(running)):
                _report(running.pop(process), process.exitcode)
                bar.update(1)
    return [cell for cell in todo if not cell.finished]


def _start(cell: CellDirectory, threads: int) -> multiprocessing.Process:
    cell.path.parent.mkdir(parents=True, exist_ok=True)
    context = multiprocessing.get_context("spawn")  # a forked TensorFlow hangs
    process = context.Process(target=_work, args=(cell, threads, os.getpid()))
    with standard_error_in(cell.log):  # TensorFlow writes to it while `_work` is being loaded
        process.start()
    return process


def _ended(processes: list) -> list:
    ready = connection.wait([process.sentinel for process in processes])
    ended = [process for process in processes if process.sentinel in ready]
    for process in ended:
        process.join()
    return ended


def _report(cell: CellDirectory, exit_code: int) -> None:
    if cell.finished:
        logging.info("Done: %s", cell.cell.name)
    else:
        logging.error("Failed (exit code %s): %s, see %s", exit_code, cell.path, cell.log)


@contextlib.contextmanager
def _running_processes() -> Iterator[dict]:
    """Yields a dict of processes; those that still run at the end save and stop."""
    running = {}
    previous = signal.signal(signal.SIGTERM, _exit)
    try:
        yield running
    finally:
        signal.signal(signal.SIGTERM, previous)
        for process in running:
            process.terminate()
        for process in running:
            process.join()


def _exit(number, frame) -> None:
    sys.exit(128 + number)


def _work(cell: CellDirectory, threads: int, parent: int) -> None:
    """What a process does.

    A cell belongs to who holds the lock of its log: a process that has lost its parent to a
    kill -9 may still be at it for a moment.
    """
    os.setpgrp()  # Ctrl-C reaches the parent alone, which asks each process once
    _end_with(parent)
    with open(cell.log, "a", encoding="utf-8") as log:
        fcntl.flock(log, fcntl.LOCK_EX)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
            os.dup2(log.fileno(), stream.fileno())
        logging.use_absl_handler()
        logging.set_verbosity(logging.INFO)
        tf.config.threading.set_intra_op_parallelism_threads(threads)
        tf.config.threading.set_inter_op_parallelism_threads(threads)
        sys.exit(0 if cell.finished else _exit_code(cell.complete))  # finished while it waited


def _exit_code(complete: Callable) -> int:
    try:
        complete()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0


def _end_with(parent: int) -> None:
    def watch():
        while os.getppid() == parent:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
