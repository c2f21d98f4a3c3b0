"""Runs commands as forks of one process that has imported the libraries already: `ForkedCommands`.

A command has its own process, as on a terminal, but does not pay for the imports again. `program`
runs what must.
"""

from __future__ import annotations

import fcntl
import gc
import importlib
import json
import os
import resource
import runpy
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MOST_PRINTED = 1 << 20


def program(code: str, *arguments, cwd=ROOT, **environment: str) -> tuple[str, str]:
    """What Python code prints on its two streams, in a process of its own."""
    line, environment = [sys.executable, "-c", code, *arguments], {**os.environ, **environment}
    environment["PYTHONPATH"] = str(ROOT)
    done = subprocess.run(line, cwd=cwd, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


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
        check: bool = False,
        kill_after: float | None = None,
        largest_file: int | None = None,
    ) -> subprocess.CompletedProcess:
        """Runs `python -m module arguments`.

        With `check` it must end well. Its process, not its children, is killed after some seconds
        (SIGKILL); no file can grow beyond `largest_file` bytes, as on a disk that is full.
        """
        texts = list(map(str, arguments))
        request = {"module": module, "arguments": texts, "cwd": str(cwd), "stdin": stdin}
        request |= {"kill_after": kill_after, "largest_file": largest_file}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        answer = json.loads(self._server.stdout.readline())
        done = subprocess.CompletedProcess([module, *texts], **answer)
        assert done.returncode == 0 or not check, done.stderr
        return done


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        with tempfile.TemporaryFile() as given:
            given.write(request["stdin"].encode(errors="surrogateescape"))
            given.seek(0)
            pipes = [_pipe() for _ in range(2)]
            child = os.fork()
            if child == 0:
                for number, end in enumerate([given.fileno(), *(end for _, end in pipes)]):
                    os.dup2(end, number)
                if (size := request["largest_file"]) is not None:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
                _run(request)
            status = _wait(child, request["kill_after"])
        stdout, stderr = (_printed(*pipe).decode(errors="surrogateescape") for pipe in pipes)
        code = os.waitstatus_to_exitcode(status)
        print(json.dumps({"returncode": code, "stdout": stdout, "stderr": stderr}), flush=True)


def _pipe() -> tuple[int, int]:
    """A pipe that takes all that a command prints: files may not be able to grow."""
    begin, end = os.pipe2(os.O_NONBLOCK)
    fcntl.fcntl(end, fcntl.F_SETPIPE_SZ, _MOST_PRINTED)
    return begin, end


def _printed(begin: int, end: int) -> bytes:
    """What was printed so far, also by children that outlive the command."""
    os.close(end)
    with os.fdopen(begin, "rb", 0) as file:
        return file.read(_MOST_PRINTED) or b""


def _wait(child: int, kill_after: float | None) -> int:
    """Waits for the end of a child, which is killed after some seconds; returns its status."""
    end = os.pidfd_open(child)
    if not select.select([end], [], [], kill_after)[0]:
        os.kill(child, signal.SIGKILL)
    os.close(end)
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
    gc.freeze()  # commands need not look through what is imported
    _serve()
