"""Processes that never outlive the one that started them."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from multiprocessing import connection

# A fork of a process that has used TensorFlow hangs; of one that has only loaded it, it is ready at
# once and saves 6 seconds of CPU time. On macOS, system libraries do not survive any fork.
_CONTEXT = multiprocessing.get_context("forkserver" if sys.platform == "linux" else "spawn")
_PRELOADED = ["tf_smoothclir.training.train"]


class ProcessGroup(dict[Hashable, multiprocessing.Process]):
    """Running processes by key, the oldest first. See `process_group`."""

    def start(self, key: Hashable, function: Callable, *arguments) -> None:
        """Starts a process that runs a function, and ends at once if this one is gone.

        It leaves the terminal's foreground group, so that Ctrl-C reaches only this process, which
        then asks the others to stop, each once.
        """
        _CONTEXT.set_forkserver_preload(_PRELOADED)
        self[key] = _CONTEXT.Process(target=_run, args=(function, *arguments))
        self[key].start()

    def wait(self) -> list[tuple[Hashable, int]]:
        """Waits until a process ends; key and exit code of all that have, negative for a signal."""
        ended = connection.wait([process.sentinel for process in self.values()])
        keys = [key for key, process in self.items() if process.sentinel in ended]
        return [(key, _exit_code(self.pop(key))) for key in keys]


@contextlib.contextmanager
def process_group() -> Iterator[ProcessGroup]:
    """Yields an empty group; at the end, also after an error or SIGTERM, terminates the rest.

    SIGTERM raises SystemExit inside the context. To be used in the main thread.
    """
    group = ProcessGroup()
    previous = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield group
    finally:
        signal.signal(signal.SIGTERM, previous)  # a second SIGTERM ends the wait
        for process in group.values():
            process.terminate()
        for process in group.values():
            process.join()


def _exit_code(process: multiprocessing.Process) -> int:
    process.join()
    return process.exitcode


def _run(function: Callable, *arguments) -> None:
    """The main function of a process."""
    os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function(*arguments)


def _end_with_parent() -> None:
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
