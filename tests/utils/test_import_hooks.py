"""Hooks on imports, and that of the data set: in processes that have imported neither library."""

import contextlib
import importlib
import subprocess
import sys

import pytest

from tf_smoothclir.utils.import_hooks import around_import


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("", ["begin", "begin", "end", "end"]),
        ("raise KeyError('inside')", ["begin", "begin", KeyError]),  # its own error
        (None, [ModuleNotFoundError]),
    ],
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
    around_import(name, loud)
    around_import(name, loud)
    try:
        importlib.import_module(name)
        importlib.import_module(name)
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
