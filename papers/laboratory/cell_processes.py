"""Running cells on all cores, one process for each; safe to stop at any moment."""

from __future__ import annotations

import errno
import fcntl
import os
import sys
import traceback
from collections.abc import Callable, Sequence

import tensorflow as tf
from absl import logging

from tf_smoothclir.papers.laboratory.cells import Cell
from tf_smoothclir.utils.errors import InputError, is_full_disk
from tf_smoothclir.utils.processes import process_group
from tf_smoothclir.utils.progress import progress_bar


def run_cells(cells: Sequence[Cell], processes: int) -> list[Cell]:
    """Completes cells, several at a time, each with its share of the cores; those that failed."""
    # Each has a process of its own: neither the memory it leaves behind nor its crash affects
    # others. SIGINT and SIGTERM stop them after they have saved their state.
    by_name = {cell.name: cell for cell in cells}
    todo = [cell for cell in by_name.values() if not cell.finished]
    if not todo:
        return []
    if again := sum(cell.is_of_other_code for cell in todo):
        text = "%d of %d cells are there of other versions of the code, and are trained again."
        logging.warning(text, again, len(by_name))
    threads = max(1, (os.cpu_count() or 1) // processes)
    title, waiting = f"{len(todo)} of {len(by_name)} cells", list(reversed(todo))
    with progress_bar(len(todo), title, "cells") as bar, process_group() as running:
        while waiting or running:
            while waiting and len(running) < processes:
                cell = waiting.pop()
                cell.path.parent.mkdir(parents=True, exist_ok=True)
                running.start(cell, _complete, cell, threads)
            bar.note(", ".join(cell.name for cell in running))
            for cell, exit_code in running.wait():
                _report(cell, exit_code)
                bar.update(1)
    return [cell for cell in todo if not cell.finished]


def _report(cell: Cell, exit_code: int) -> None:
    if cell.finished:
        logging.info("Done: %s", cell.name)
    elif exit_code == errno.ENOSPC:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(cell.path))
    else:
        logging.error("Failed (exit code %s): %s, see %s", exit_code, cell.path, cell.log)


def _complete(cell: Cell, threads: int) -> None:
    """The main function of a cell's process, which holds the lock of its log."""
    # After a SIGKILL of their parent, an earlier process may still be running for a moment.
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


def _exit_code(complete: Callable[[], None]) -> int:
    try:
        complete()
    except Exception as error:
        if is_full_disk(error) or is_full_disk(error.__cause__):
            return errno.ENOSPC  # the log has no room either
        if isinstance(error, InputError):
            print(f"error: {error}", file=sys.stderr)
        else:
            traceback.print_exc()
        return 1
    return 0
