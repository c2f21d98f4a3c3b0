"""Groups of processes: how they end, and that none is left behind."""

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


def save_on_sigterm(path):
    signal.signal(signal.SIGTERM, lambda *_: (Path(path).write_text("saved"), sys.exit(0)))
    Path(path).touch()
    time.sleep(HALF_A_MINUTE)


def test_wait_returns_each_key_with_its_exit_code_once_and_a_key_can_be_reused():
    with process_group() as running:
        running.start("good", sys.exit, 0)
        running.start("bad", sys.exit, 3)
        assert list(running) == ["good", "bad"]
        ended = []
        while running:
            ended += running.wait()
        assert sorted(ended) == [("bad", 3), ("good", 0)]
        running.start("bad", signal.raise_signal, signal.SIGKILL)
        assert running.wait() == [("bad", -signal.SIGKILL)]


def test_environment_and_output_are_those_at_the_start_of_each(capfd, monkeypatch):
    # The process that they are forked from is older than either change.
    with process_group() as running:
        for value in ("first", "second"):
            monkeypatch.setenv("SMOOTHCLIR_TEST", value)
            running.start(value, os.system, "echo $SMOOTHCLIR_TEST")
            running.wait()
            assert capfd.readouterr() == (f"{value}\n", "")


def test_processes_save_and_stop_after_an_error(tmp_path):
    path = tmp_path / "state"

    def fail_while_one_runs():
        with process_group() as running:
            running.start("key", save_on_sigterm, str(path))
            end = time.monotonic() + HALF_A_MINUTE
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.02)
            raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        fail_while_one_runs()
    assert path.read_text() == "saved"


PROGRAM = """
from tests.utils.test_processes import say_so_and_sleep
from tf_smoothclir.utils.processes import process_group

with process_group() as running:
    running.start("key", say_so_and_sleep)
    running.wait()
"""


def say_so_and_sleep():
    print("started", flush=True)
    time.sleep(HALF_A_MINUTE)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 128 + 15), (signal.SIGKILL, -9)])
def test_processes_end_with_their_parent(number, code):
    command = [sys.executable, "-c", PROGRAM]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "started\n"
    parent.send_signal(number)
    parent.communicate(timeout=HALF_A_MINUTE / 2)  # until no process has the output open
    assert parent.returncode == code
