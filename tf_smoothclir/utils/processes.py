"""A group of worker processes that never outlives the process that started it."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Hashable, Iterator
from multiprocessing import connection, forkserver, reduction

from tf_smoothclir.utils.printing import standard_error_in

# A fork of a process that has used TensorFlow hangs; of one that has only loaded it, it is ready at
# once and saves 6 seconds of CPU time. On macOS, system libraries do not survive any fork.
_METHOD = "forkserver" if sys.platform == "linux" else "spawn"
_PRELOADED = ["tf_smoothclir.training.train"]


class ProcessGroup:
    """Processes that run one function each, known by keys. See `process_group`."""

    def __init__(self):
        self._running: dict[Hashable, multiprocessing.Process] = {}

    def __len__(self) -> int:
        return len(self._running)

    def __iter__(self) -> Iterator[Hashable]:
        """Iterates over the keys of the running processes, the oldest first."""
        return iter(self._running)

    def start(self, key: Hashable, function: Callable, *arguments) -> None:
        """Starts a process, with the environment and the output streams that this one has now."""
        # It leaves the terminal's foreground group: Ctrl-C reaches only this process, which asks
        # the others to stop, each once. It ends at once if this process is gone, even by SIGKILL.
        _ensure_server()
        context = multiprocessing.get_context(_METHOD)
        run = (_Streams(), dict(os.environ), function, arguments)
        process = context.Process(target=_run, args=run)
        process.start()
        self._running[key] = process

    def wait(self) -> list[tuple[Hashable, int]]:
        """Waits until a process ends; key and exit code of all that have, negative for a signal."""
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
    """Yields a group, in the main thread; at the end, also after SIGTERM, terminates the rest."""
    group = ProcessGroup()
    previous = signal.signal(signal.SIGTERM, _exit)
    try:
        yield group
    finally:
        signal.signal(signal.SIGTERM, previous)  # a second SIGTERM ends the wait
        group.terminate()


def _exit(signal_number: int, frame) -> None:
    sys.exit(128 + signal_number)


def _exit_code(process: multiprocessing.Process) -> int:
    process.join()
    return process.exitcode


class _Streams:
    """Standard output and error of this process; pickled, those of the one that starts another."""

    def __reduce__(self) -> tuple:
        return _taken_over, (reduction.DupFd(1), reduction.DupFd(2))


def _taken_over(*streams) -> _Streams:
    for descriptor, stream in enumerate(streams, start=1):
        if (passed := stream.detach()) != descriptor:
            os.dup2(passed, descriptor)
            os.close(passed)
    return _Streams()


def _ensure_server() -> None:
    """Starts the process that the others are forked from, silent and out of the reach of Ctrl-C."""
    if _METHOD != "forkserver":
        return
    multiprocessing.get_context(_METHOD).set_forkserver_preload(_PRELOADED)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with standard_error_in(os.devnull):
            forkserver.ensure_running()
    finally:
        signal.signal(signal.SIGINT, previous)


def _run(_: _Streams, environment: dict[str, str], function: Callable, arguments: tuple) -> None:
    """The main function of a process."""
    os.setpgrp()
    os.environ.clear()
    os.environ.update(environment)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    function(*arguments)


def _end_with_parent() -> None:
    connection.wait([multiprocessing.parent_process().sentinel])
    os._exit(1)
