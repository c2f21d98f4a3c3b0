"""Hooks on imports, in processes that have imported nothing."""

import subprocess
import sys

import pytest


def run(code, *arguments, cwd=None):
    line = [sys.executable, "-c", code, *arguments]
    return subprocess.run(line, cwd=cwd, capture_output=True, text=True, check=False)


HOOKED = """
import contextlib, sys
from tf_smoothclir.utils.import_hooks import around_import

@contextlib.contextmanager
def loud():
    print("begin")
    yield
    print("end", "{0}" in sys.modules)

for _ in range({1}):
    around_import("{0}", loud)
print("nothing yet")
try:
    import {0}
    import {0}
    print({0}.__name__, {0}.__spec__.name)
except Exception as error:
    print(type(error).__name__)
"""


@pytest.mark.parametrize(
    ("library", "times", "expected"),
    [
        ("wave", 1, ["begin", "end True", "wave wave"]),
        ("wave", 2, ["begin", "begin", "end True", "end True", "wave wave"]),
        ("not_there", 1, ["ModuleNotFoundError"]),
        ("broken", 1, ["begin", "KeyError"]),  # its own error
    ],
)
def test_only_the_first_import_runs_inside_each_context(tmp_path, library, times, expected):
    (tmp_path / "broken.py").write_text("raise KeyError('inside')\n")
    done = run(HOOKED.format(library, times), cwd=tmp_path)
    assert done.stdout.splitlines() == ["nothing yet", *expected], done.stderr


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


def test_the_dataset_is_registered_once_both_are_imported():
    orders = (
        "import tf_smoothclir; import tensorflow_datasets as tfds",
        "import tensorflow_datasets as tfds; import tf_smoothclir",
        "import tf_smoothclir.data.sources.wiki_clir_builder; import tensorflow_datasets as tfds",
    )
    done = run(IN_FORKS, *orders)
    assert done.stdout.split() == ["True"] * len(orders), done.stderr
