"""Runs smoothclir-index for each line of standard input, and kills it (SIGKILL) at some point.

A line is JSON, `[event, end of a path, flags]`. The command is killed at the first of Python's
audit events of this name, such as "os.rename", with an argument that ends like this, a regular
expression; with an empty event, it runs to its end. Prints the exit code of each command. Each is a
fork of this process, which has imported everything but not used TensorFlow yet.
"""

import contextlib
import json
import os
import re
import signal
import sys

from export.build_index import run

# What the command imports when it runs.
from tf_smoothclir.index import builder, document_collections, export_halves  # noqa: F401


def main() -> None:
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
    """Kills this process at the first such event with an argument whose end matches `end`."""

    matches = re.compile(rf"(.*[/.])?({end})").fullmatch

    def hook(happening, arguments):
        if happening == event and any(matches(str(argument)) for argument in arguments):
            os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)


if __name__ == "__main__":
    main()
