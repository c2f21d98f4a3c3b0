"""A group of worker processes that never outlives the process that started it."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from multiprocessing import connection


class ProcessGroup:
    """Processes that run one function each, known by keys. See `process_group`."""

    def __init__(self):
        """Starts nothing."""
        self._running: dict[Hashable, multiprocessing.Process] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Hashable]:
        """Iterates over the keys of the running processes, the oldest first."""
        return iter(self._running)

    def start(self, key: Hashable, function: Callable, *arguments) -> None:
        """Starts a process.

        The process is spawned, because a forked TensorFlow hangs. It leaves the terminal's
        foreground group, so that Ctrl-C reaches only this process, which then asks the others to
        stop, each once. It ends at once if this process is gone, even by SIGKILL.

        Args:
            key: Names the process in `wait`; no running process may have the same.
            function: What the process runs; a function of a module, so that it can be pickled.
            *arguments: Its arguments.
        """
        context = multiprocessing.get_context("spawn")
        process = context.Process(target=_run, args=(function, arguments))
        process.start()
        self._running[key] = process

    def wait(self) -> list[tuple[Hashable, int]]:
        """Waits until a process ends; returns the key and exit code of all that have ended.

        A negative exit code is the number of the signal that killed the process.
        """
        ended = connection.wait([process.sentinel for process in self._running.values()])
        keys = [key for key, process in self._running.items() if process.sentinel in ended]
        return [(key, _exit_code(self._running.pop(key))) for key in keys]

    def terminate(self) -> None:
        """Sends SIGTERM to the running processes and waits for their end."""
        for process in self._running.values():
            process.terminate()
        for process in self._running.values():
            process.join()
        self._running.clear()


@contextlib.contextmanager
def process_group() -> Iterator[ProcessGroup]:
    """Yields an empty group; at the end, also after an error or SIGTERM, terminates the rest.

    SIGTERM raises SystemExit inside the context. To be used in the main thread.
    """
    group = ProcessGroup()
    previous = signal.signal(signal.SIGTERM, _exit)
    try:
        yield group
    finally:
        signal.signal(signal.SIGTERM, previous)  # a second SIGTERM ends the wait
        group.terminate()


def _exit(number: int, frame) -> None:
    sys.exit(128 + number)


def _exit_code(process: multiprocessing.Process) -> int:
    process.join()
    return process.exitcode


def _run(function: Callable, arguments: tuple) -> None:
    """The main function of a process."""
    os.setpgrp()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function(*arguments)


def _end_with_parent() -> None:
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
