"""smoothclir-index under kill -9: the old index or the new one is there, and a rerun cleans up."""

from __future__ import annotations

import functools
import json
import shutil
import signal
import subprocess
import sys
from pathlib import PurePath

import pytest

from tests.published import encode
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.publishing.export_directory import load_tower

pytestmark = pytest.mark.slow

OLD = {
    "d0": "roter",
    "d1": "apfel",
    "d2": "meer",
    "d3": "roter apfel",
    "d4": "apfel meer",
    "d5": "",
}
NEW = {**OLD, "d1": "meer meer", "d6": "roter meer"}
del NEW["d2"]
KILLED = -signal.SIGKILL
# Audit events and ends of their paths as patterns, in the order in which they happen.
OF_A_NEW_INDEX = [
    ("os.mkdir", "documents"),
    ("open", "vectors"),
    ("os.rename", "manifest.json"),
    ("os.rename", "index"),
]
OF_ONE_THAT_REPLACES_IT = [
    ("open", "vectors"),
    ("os.rename", "manifest.json"),
    ("ctypes.dlsym", "renameat2"),
]
WHEN_IT_IS_IN_PLACE = ("shutil.rmtree", r"\.index\.[^/]*")


@pytest.fixture(scope="module")
def index_command():
    """`index_command(event, end, flags)` runs the command until then; returns its exit code."""
    command = [sys.executable, "-m", "tests.index.killed_index"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as child:

        def run(event, end, flags):
            print(json.dumps([event, end, flags]), file=child.stdin, flush=True)
            return int(child.stdout.readline())

        yield run
        child.stdin.close()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """The two states of a collection."""
    path = tmp_path_factory.mktemp("files")
    for name, texts in {"old": OLD, "new": NEW}.items():
        lines = (f"{id_}\t{text}\n" for id_, text in texts.items())
        (path / f"{name}.tsv").write_text("".join(lines))
    return path


@pytest.fixture(scope="module")
def built(export, files, index_command):
    """The index of the old state; read-only."""
    path = files / "built" / "index"
    flags = [f"--export_dir={export}", f"--index_dir={path}", f"--collection={files}/old.tsv"]
    assert index_command("", "", flags) == 0
    return path


@pytest.fixture
def directory(built, tmp_path):
    """A directory with a copy of it."""
    shutil.copytree(built, tmp_path / "index")
    return tmp_path


@pytest.fixture(scope="module")
def towers(export):
    """Role -> from texts to vectors."""
    loaded = {role: load_tower(export, role)[0] for role in ("query", "document")}
    return {role: functools.partial(encode, tower) for role, tower in loaded.items()}


def assert_holds(directory, texts, towers):
    """A search finds exactly these texts, with their scores."""
    query = towers["query"](["red apple"])
    (results,) = DocumentIndex(directory / "index").search(query, 100)
    scores = towers["document"](list(texts.values())) @ query[0]
    expected = {id_ for id_, score in zip(texts, scores) if score}
    assert {result.id: result.text for result in results} == {id_: texts[id_] for id_ in expected}
    scores = towers["document"]([result.text for result in results]) @ query[0]
    assert [result.score for result in results] == pytest.approx(scores, abs=1e-6)


def assert_nothing_is_left_over(directory):
    """The directory holds the files of the manifest and no others."""
    index = directory / "index"
    there = {path.relative_to(directory).as_posix() for path in directory.rglob("*")}
    files = {"manifest.json", *json.loads((index / "manifest.json").read_text())["files"]}
    folders = {folder.as_posix() for file in files for folder in PurePath("index", file).parents}
    assert there == {f"index/{file}" for file in files} | folders - {"."}


@pytest.mark.parametrize("moment", OF_A_NEW_INDEX, ids=" ".join)
def test_new_index_is_there_complete_or_not_at_all(
    moment, index_command, export, files, towers, tmp_path
):
    flags = [f"--export_dir={export}", f"--index_dir={tmp_path}/index"]
    flags.append(f"--collection={files}/old.tsv")
    assert index_command(*moment, flags) == KILLED
    assert not (tmp_path / "index").exists()
    assert index_command("", "", flags) == 0
    assert_holds(tmp_path, OLD, towers)
    assert_nothing_is_left_over(tmp_path)


@pytest.mark.parametrize("moment", [*OF_ONE_THAT_REPLACES_IT, WHEN_IT_IS_IN_PLACE], ids=" ".join)
def test_searchers_find_the_old_index_or_the_one_that_replaces_it(
    moment, index_command, export, files, towers, directory
):
    flags = [f"--export_dir={export}", f"--index_dir={directory}/index"]
    flags += [f"--collection={files}/new.tsv", "--overwrite"]
    assert index_command(*moment, flags) == KILLED
    assert_holds(directory, NEW if moment == WHEN_IT_IS_IN_PLACE else OLD, towers)
    assert index_command("", "", flags) == 0
    assert_holds(directory, NEW, towers)
    assert_nothing_is_left_over(directory)
