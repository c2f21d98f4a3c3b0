"""Runs commands as forks of one process that has imported the libraries already: `ForkedCommands`.

A command has its own process, as on a terminal, but does not pay for the imports again.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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
        self, module: str, *arguments, cwd=ROOT, stdin: str = ""
    ) -> subprocess.CompletedProcess:
        """Runs `python -m module arguments`."""
        texts = list(map(str, arguments))
        request = {"module": module, "arguments": texts, "cwd": str(cwd), "stdin": stdin}
        print(json.dumps(request), file=self._server.stdin, flush=True)
        answer = json.loads(self._server.stdout.readline())
        return subprocess.CompletedProcess([module, *texts], **answer)


def _serve() -> None:
    for line in sys.stdin:
        request = json.loads(line)
        with contextlib.ExitStack() as stack:
            streams = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(3)]
            streams[0].write(request["stdin"].encode(errors="surrogateescape"))
            streams[0].seek(0)
            child = os.fork()
            if child == 0:
                for number, stream in enumerate(streams):
                    os.dup2(stream.fileno(), number)
                _run(request)
            _, status = os.waitpid(child, 0)
            for stream in streams:
                stream.seek(0)
            stdout, stderr = (one.read().decode(errors="surrogateescape") for one in streams[1:])
        code = os.waitstatus_to_exitcode(status)
        answer = {"returncode": code, "stdout": stdout, "stderr": stderr}
        print(json.dumps(answer), flush=True)


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
