"""Hooks on imports, and that of the data set: in processes that have imported neither library."""

import contextlib
import importlib
import subprocess
import sys

import pytest

from tf_smoothclir.utils.import_hooks import around_import


@pytest.mark.parametrize(
    ("content", "times", "expected"),
    [
        ("happened = []", 1, ["begin", "end"]),
        ("happened = []", 2, ["begin", "begin", "end", "end"]),
        ("raise KeyError('inside')", 1, ["begin", KeyError]),  # its own error
        (None, 1, [ModuleNotFoundError]),
    ],
)
def test_only_the_first_import_runs_inside_each_context(
    tmp_path, monkeypatch, content, times, expected
):
    happened = []

    @contextlib.contextmanager
    def loud():
        happened.append("begin")
        yield
        assert hooked in sys.modules
        happened.append("end")

    hooked = f"hooked_{len(expected)}_{times}"
    if content is not None:
        (tmp_path / f"{hooked}.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    for _ in range(times):
        around_import(hooked, loud)
    try:
        assert importlib.import_module(hooked).__spec__.name == hooked
        importlib.import_module(hooked)
    except Exception as error:
        happened.append(type(error))
    assert happened == expected


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
    command = [sys.executable, "-c", IN_FORKS, *orders]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True"] * len(orders), done.stderr
