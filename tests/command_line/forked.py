"""Runs commands as forks of one process that has imported the libraries already: `ForkedCommands`.

A command has its own process, as on a terminal, but does not pay for the imports again.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib
import json
import os
import resource
import runpy
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MOST_PRINTED = 1 << 20  # into a pipe


class ForkedCommands:
    """A context manager whose `run` returns what `subprocess.run` would."""

    def __init__(self, *preloaded: str):
        """Names the modules to import before the first command is forked."""
        self._server = subprocess.Popen(
            [sys.executable, "-m", __name__, *preloaded],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> ForkedCommands:
        return self

    def __exit__(self, *_) -> None:
        self._server.stdin.close()
        self._server.wait(timeout=60)

    def run(
        self,
        module: str,
        *arguments,
        cwd=ROOT,
        stdin: str = "",
        kill_after: float | None = None,
        largest_file: int | None = None,
    ) -> subprocess.CompletedProcess:
        """Runs `python -m module arguments`.

        Args:
            module: The command.
            *arguments: Its flags.
            cwd: Its directory.
            stdin: What it reads.
            kill_after: Seconds after which its process is killed (SIGKILL); not its children.
            largest_file: Bytes beyond which no file can grow, as on a disk that is full.
        """
        texts = list(map(str, arguments))
        request = {"module": module, "arguments": texts, "cwd": str(cwd), "stdin": stdin}
        request |= {"kill_after": kill_after, "largest_file": largest_file}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        answer = json.loads(self._server.stdout.readline())
        return subprocess.CompletedProcess([module, *texts], **answer)


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        with contextlib.ExitStack() as stack:
            given = stack.enter_context(tempfile.TemporaryFile())
            given.write(request["stdin"].encode(errors="surrogateescape"))
            given.seek(0)
            printed = [stack.enter_context(_Printed(request["largest_file"])) for _ in range(2)]
            child = os.fork()
            if child == 0:
                for number, file in enumerate([given.fileno(), *(one.end for one in printed)]):
                    os.dup2(file, number)
                if (size := request["largest_file"]) is not None:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
                _run(request)
            status = _wait(child, request["kill_after"])
            stdout, stderr = (one.read().decode(errors="surrogateescape") for one in printed)
        code = os.waitstatus_to_exitcode(status)
        answer = {"returncode": code, "stdout": stdout, "stderr": stderr}
        print(json.dumps(answer), flush=True)


class _Printed:
    """What a command prints: a file, or a pipe where files cannot grow."""

    def __init__(self, largest_file: int | None):
        self._ends = []
        if largest_file is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115
            self.end = self._file.fileno()
        else:
            self._ends = os.pipe2(os.O_NONBLOCK)
            fcntl.fcntl(self._ends[1], fcntl.F_SETPIPE_SZ, _MOST_PRINTED)
            self._file, self.end = os.fdopen(self._ends[0], "rb", 0), self._ends[1]

    def __enter__(self) -> _Printed:
        return self

    def __exit__(self, *_) -> None:
        self._file.close()
        if self._ends:
            os.close(self.end)

    def read(self) -> bytes:
        """Returns what was printed so far, also by children that outlive the command."""
        if self._ends:
            return self._file.read(_MOST_PRINTED) or b""
        self._file.seek(0)
        return self._file.read()


def _wait(child: int, kill_after: float | None) -> int:
    """Waits for the end of a child, which is killed after some seconds; returns its status."""
    deadline = float("inf") if kill_after is None else time.monotonic() + kill_after
    while deadline < float("inf"):
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            return status
        if time.monotonic() >= deadline:
            os.kill(child, signal.SIGKILL)
            break
        time.sleep(0.001)
    return os.waitpid(child, 0)[1]


def _run(request: dict) -> None:
    """Runs a command in this process, which ends with it."""
    code = 1
    try:
        sys.stdin = os.fdopen(0, closefd=False)
        os.chdir(request["cwd"])
        sys.argv = [request["module"], *request["arguments"]]
        runpy.run_module(request["module"], run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        importlib.import_module(name)
    _serve()
