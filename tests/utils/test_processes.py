"""Groups of processes and threads: order, ends, what is left behind; import hooks; memory."""

import contextlib
import importlib
import os
import platform
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from tests.cases import cases
from tests.command_line.forked import ROOT, program
from tf_smoothclir.utils import devices, import_hooks, memory, parallel, processes

HALF_A_MINUTE = 30.0
PROGRAM = """
from tests.utils.test_processes import say_so_and_sleep
from tf_smoothclir.utils.processes import process_group

with process_group() as running:
    running.start("key", say_so_and_sleep)
    running.wait()
"""
IN_FORKS = """
import os, sys
import tensorflow  # once; what follows it is forked
for code in sys.argv[1:]:
    if not os.fork():
        try:
            exec(code)
            print("wiki_clir" in tfds.list_builders(), flush=True)
        finally:
            os._exit(0)
    os.wait()
"""


def save_on_sigterm(path):
    signal.signal(signal.SIGTERM, lambda *_: (Path(path).write_text("saved"), sys.exit(0)))
    Path(path).touch()
    time.sleep(HALF_A_MINUTE)


def test_wait_returns_each_key_with_its_exit_code_once_and_a_key_can_be_reused():
    with processes.process_group() as running:
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
    with processes.process_group() as running:
        for value in ("first", "second"):
            monkeypatch.setenv("SMOOTHCLIR_TEST", value)
            running.start(value, os.system, "echo $SMOOTHCLIR_TEST")
            running.wait()
            assert capfd.readouterr() == (f"{value}\n", "")


def test_processes_save_and_stop_after_an_error(tmp_path):
    path = tmp_path / "state"

    def fail_while_one_runs():
        with processes.process_group() as running:
            running.start("key", save_on_sigterm, str(path))
            end = time.monotonic() + HALF_A_MINUTE
            while not path.exists() and time.monotonic() < end:
                time.sleep(0.02)
            raise KeyError("of the caller")

    with pytest.raises(KeyError, match="of the caller"):
        fail_while_one_runs()
    assert path.read_text() == "saved"


def say_so_and_sleep():
    print("started", flush=True)
    time.sleep(HALF_A_MINUTE)


@cases("number, code", (signal.SIGTERM, 128 + 15), (signal.SIGKILL, -9))
def test_processes_end_with_their_parent(number, code):
    command = [sys.executable, "-c", PROGRAM]
    parent = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout.readline() == "started\n"
    parent.send_signal(number)
    parent.communicate(timeout=HALF_A_MINUTE / 2)  # until no process has the output open
    assert parent.returncode == code


@cases("threads_there", 1, 2, 5)
def test_results_keep_the_order_of_the_items(threads_there, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: threads_there)
    ended = []

    def work(item):
        time.sleep(0.02 if item % 3 == 0 else 0)
        ended.append(item)
        return item**2

    assert list(parallel.map_in_threads(work, range(20))) == [item**2 for item in range(20)]
    assert (ended == sorted(ended)) == (threads_there == 1)
    assert list(parallel.map_in_threads(work, [])) == []


def test_only_a_few_items_are_read_ahead(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    taken = []
    results = parallel.map_in_threads(str, (taken.append(item) or item for item in range(50)))
    for item, result in enumerate(results):
        assert result == str(item)
        assert len(taken) <= item + 3
    assert len(taken) == item + 1 == 50


def test_an_error_is_raised_in_order_and_ends_the_work_as_closing_does(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    threads, begun = threading.active_count(), []

    def work(item):
        begun.append(item)
        return 1 // (5 - item)

    results = parallel.map_in_threads(work, range(1000))
    assert [next(results) for _ in range(5)] == [0, 0, 0, 0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert max(begun) < 12
    assert threading.active_count() == threads

    results = parallel.map_in_threads(str, range(1000))
    assert next(results) == "0"
    results.close()
    assert threading.active_count() == threads


@cases("has_gpu, device", (True, "/device:CPU:*"), (False, ""))
def test_a_function_runs_on_the_cpu_in_each_thread_despite_a_gpu(monkeypatch, has_gpu, device):
    monkeypatch.setattr(devices, "has_gpu", lambda: has_gpu)
    graph = tf.Graph()

    def device_of():
        return tf.constant(1).op.device

    def devices_of(_):
        with graph.as_default():
            return device_of(), devices.on_the_cpu(device_of)(), device_of()

    with tf.device("CPU"):  # of this thread alone
        assert set(parallel.map_in_threads(devices_of, range(3))) == {("", device, "")}


@cases(
    "content, expected",
    ("", ["begin", "begin", "end", "end"]),
    ("raise KeyError('inside')", ["begin", "begin", KeyError]),  # its own error
    (None, [ModuleNotFoundError]),
)
def test_only_the_first_import_runs_inside_each_context(tmp_path, monkeypatch, content, expected):
    name, happened = f"hooked_{len(expected)}", []

    @contextlib.contextmanager
    def loud():
        happened.append("begin")
        yield
        happened.append("end")

    if content is not None:
        (tmp_path / f"{name}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    import_hooks.around_import(name, loud)
    import_hooks.around_import(name, loud)
    try:
        importlib.import_module(name)
        importlib.import_module(name)
    except Exception as error:
        happened.append(type(error))
    assert happened == expected


def test_the_dataset_is_registered_once_both_are_imported():
    orders = (
        "import tf_smoothclir; import tensorflow_datasets as tfds",
        "import tensorflow_datasets as tfds; import tf_smoothclir",
        "import tf_smoothclir.data.sources.wiki_clir_builder; import tensorflow_datasets as tfds",
    )
    printed, errors = program(IN_FORKS, *orders)
    assert printed.split() == ["True"] * len(orders), errors


PEAK = """
import numpy as np
from tf_smoothclir.utils.memory import peak_memory
before = peak_memory()
np.ones(50 << 20, np.uint8)
print(before, peak_memory())
"""


def test_the_peak_is_that_of_the_program_alone_not_of_the_one_that_started_it(monkeypatch):
    here = np.ones(600 << 20, np.uint8)  # which getrusage of the child would count
    before, after = map(int, program(PEAK)[0].split())
    assert after - before > 40 << 20
    assert after < here.nbytes < (peak := memory.peak_memory())
    monkeypatch.setattr(memory, "_STATUS", ROOT / "absent")
    assert memory.peak_memory() >= peak * 0.9


FAULTS = """
import resource
import numpy as np
from tf_smoothclir.utils.memory import reuse_freed_memory
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.ones(8 << 20, np.uint8), np.ones(8 << 20, np.uint8)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(faults())
reuse_freed_memory()
faults()  # which gets the pages of both arrays
print(faults())
"""

ARENAS = """
import concurrent.futures, ctypes, os, threading
from tf_smoothclir.utils.memory import share_freed_memory
libc = ctypes.CDLL(None)
share_freed_memory()
together = threading.Barrier(4 * os.cpu_count())
def allocate(_):
    together.wait()
    ctypes.create_string_buffer(4000)
with concurrent.futures.ThreadPoolExecutor(together.parties) as pool:
    pool.map(allocate, range(together.parties))
libc.malloc_info(0, ctypes.c_void_p.in_dll(libc, "stdout"))  # one element for each arena
libc.fflush(None)
"""
only_glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these")


@only_glibc
def test_arrays_take_the_pages_of_those_before_them():
    before, after = map(int, program(FAULTS)[0].split())
    # 20 times two arrays of 8 MB have 81,920 pages of 4 kB; huge ones, of 2 MB, are fewer.
    assert before > 1000 > after


@only_glibc
def test_threads_share_as_many_arenas_as_there_are_processors():
    arenas = program(ARENAS)[0].count("<heap nr=")
    assert 0 < arenas <= os.cpu_count()  # 4 times as many without it
