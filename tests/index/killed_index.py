"""Runs smoothclir-index for each line of standard input, and kills it (SIGKILL) at a moment.

A line is JSON: `[event, end of a path, flags]`. An event is one of Python's audit events, such as
"os.rename", which comes before anything is renamed; the first with an argument that ends so is the
moment. With an empty event, the command runs to its end. Prints, for each, the exit code.

Each is a fork of this process, which has imported everything but has not begun to use TensorFlow.
"""

import contextlib
import json
import os
import signal
import sys

from export.build_index import run

# What the command imports when it runs.
from tf_smoothclir.index import document_collections, updates  # noqa: F401
from tf_smoothclir.publishing import export_directory  # noqa: F401
from tf_smoothclir.search import searcher  # noqa: F401


def main() -> None:
    """Runs the lines."""
    for line in sys.stdin:
        event, end, flags = json.loads(line)
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            continue
        if event:
            kill_at(event, end)
        sys.argv = ["smoothclir-index", "--verbosity=-1", *flags]
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            run()


def kill_at(event: str, end: str) -> None:
    """Kills this process at the first event with an argument that ends so."""

    def hook(happening, arguments):
        if happening == event and any(str(argument).endswith(end) for argument in arguments):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
