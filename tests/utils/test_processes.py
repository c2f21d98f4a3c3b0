"""Groups of processes: how they end, and that none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tf_smoothclir.utils.processes import process_group

ROOT = Path(__file__).resolve().parents[2]
HALF_A_MINUTE = 30.0


def kill_itself():
    os.kill(os.getpid(), signal.SIGKILL)


def save_on_sigterm(path):
    signal.signal(signal.SIGTERM, lambda *_: (Path(path).write_text("saved"), sys.exit(0)))
    Path(path).touch()
    time.sleep(HALF_A_MINUTE)


def wait_until(condition):
    end = time.monotonic() + HALF_A_MINUTE
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def test_wait_returns_each_key_with_its_exit_code_once_and_a_key_can_be_reused():
    with process_group() as running:
        running.start("good", sys.exit, 0)
        running.start("bad", sys.exit, 3)
        assert list(running) == ["good", "bad"]
        ended = []
        while running:
            ended += running.wait()
        assert sorted(ended) == [("bad", 3), ("good", 0)]
        running.start("bad", kill_itself)
        assert running.wait() == [("bad", -signal.SIGKILL)]


def write_variable():
    print(os.environ.get("SMOOTHCLIR_TEST"), flush=True)


def test_environment_and_output_are_those_at_the_start_of_each(capfd, monkeypatch):
    # The process that they are forked from is older than either change.
    with process_group() as running:
        for value in ("first", "second"):
            monkeypatch.setenv("SMOOTHCLIR_TEST", value)
            running.start(value, write_variable)
            running.wait()
            assert capfd.readouterr() == (f"{value}\n", "")


def test_processes_save_and_stop_after_an_error(tmp_path):
    path = tmp_path / "state"

    def fail_while_one_runs():
        with process_group() as running:
            running.start("key", save_on_sigterm, str(path))
            wait_until(path.exists)
            raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        fail_while_one_runs()
    assert path.read_text() == "saved"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_process_ends_with_its_parent(number, tmp_path):
    started = tmp_path / "pid"
    script = tmp_path / "program.py"
    script.write_text(f"""
from tests.utils.test_processes import write_pid_and_sleep
from tf_smoothclir.utils.processes import process_group

if __name__ == "__main__":
    with process_group() as running:
        running.start("key", write_pid_and_sleep, {str(started)!r})
        running.wait()
""")
    parent = subprocess.Popen([sys.executable, script], env={**os.environ, "PYTHONPATH": str(ROOT)})
    wait_until(lambda: started.exists() and started.read_text())
    parent.send_signal(number)
    assert parent.wait(HALF_A_MINUTE) == {signal.SIGTERM: 128 + 15, signal.SIGKILL: -9}[number]
    wait_until(lambda: not is_running(int(started.read_text())))


def write_pid_and_sleep(path):
    Path(path).write_text(str(os.getpid()))
    time.sleep(HALF_A_MINUTE)


def is_running(pid):
    try:
        os.kill(pid, 0)
        # A zombie that nobody has waited for has ended too.
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except ProcessLookupError:
        return False
    except FileNotFoundError:  # it ended between the two looks, or this system has no /proc
        return not Path("/proc/self/stat").exists()
