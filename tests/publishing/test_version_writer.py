"""Publishing a version: all parts or none, never over an old version, no unnoticed change."""

import shutil
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import pytest
import tensorflow as tf

from tests.flushes import flushed_before_named
from tests.nth_call import at_call
from tests.published import FACTS, NoVerifier
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.publishing import version_writer
from tf_smoothclir.publishing.export_directory import (
    DIRECTORIES,
    exported_versions,
    latest_manifest,
    load_part,
    part_dir,
)
from tf_smoothclir.publishing.version_writer import publish_version
from tf_smoothclir.storage import folder
from tf_smoothclir.utils.errors import InputError

LOCK = ".smoothclir-export.lock"


class FakePart:
    """A part that needs nothing of TensorFlow."""

    num_documents, depth = 3, 2

    def __init__(self, name, seed):
        self.name, self.seed = name, seed

    def digest(self):
        return f"{self.name} {self.seed}"

    def save(self, path):
        Path(path, "variables").mkdir(parents=True)
        Path(path, "saved_model.pb").write_text(self.digest())
        Path(path, "variables", "variables.index").write_text(self.digest())


# Step -> owner and name of the function that does it.
STEPS = {
    "save": (FakePart, "save"),
    "warm-up": (version_writer, "write_warm_up"),
    "manifest": (folder, "write_json"),
    "compare": (NoVerifier, "compare"),
    "flush": (version_writer, "flush_all"),
    "rename": (version_writer, "_rename"),
}
PARTS = ("document_tower", "search", "query_tower")  # in the order of the renames
# Step, number of the call that fails, and parts that are published nevertheless.
FAULTS = [
    *((step, call, ()) for call, step in enumerate(("save", "warm-up", "manifest"), start=1)),
    ("compare", 1, ()),
    ("flush", 1, ()),
    *(("rename", call, PARTS[: call - 1]) for call in (1, 2, 3)),
]


def publish_fakes(path, seed=0, *, search=False):
    """Publishes parts that cannot be loaded; returns the version."""
    roles = (*ROLES, "search") if search else ROLES
    parts = {role: FakePart(role, seed) for role in roles}
    return publish_version(parts, path, FACTS, {role: [b"a text"] for role in ROLES})


def inject(step, call, fault, set_attribute):
    """Makes one call of a step of publishing run `fault` first."""
    owner, name = STEPS[step]
    set_attribute(owner, name, at_call(call, getattr(owner, name), fault))


@pytest.fixture
def fakes(no_child_process, monkeypatch, tmp_path):
    """A directory with version 1 of all parts; `load_part` checks them and loads nothing."""
    loaded = types.SimpleNamespace(signatures={"serving_default": types.SimpleNamespace()})
    monkeypatch.setattr(tf.saved_model, "load", lambda path: loaded)
    assert publish_fakes(tmp_path / "export", search=True) == 1
    return tmp_path / "export"


def visible(path):
    """What a server sees: part/version, for all names that do not begin with a dot."""
    return {
        f"{part.name}/{version.name}"
        for part in path.glob("[!.]*")
        for version in part.glob("[!.]*")
    }


def names(path):
    return {child.name for child in path.iterdir()}


@pytest.mark.parametrize(("step", "call", "parts"), FAULTS)
def test_failure_leaves_no_half_written_version_and_refuses_it_by_number(
    fakes, monkeypatch, step, call, parts
):
    before, there = names(fakes), visible(fakes)
    with monkeypatch.context() as patch:
        inject(step, call, mock.Mock(side_effect=OSError("does not catch")), patch.setattr)
        with pytest.raises(OSError, match="does not catch"):
            publish_fakes(fakes, search=True)
    assert names(fakes) == before  # not even a temporary directory
    assert visible(fakes) == there | {f"{part}/2" for part in parts}
    for role in (*ROLES, "search"):
        assert load_part(fakes, role).manifest.version == 1
    if parts:
        with pytest.raises(InputError, match=r"no query tower of version 2\. Write all"):
            load_part(fakes, "query", 2)
        with pytest.raises(InputError, match=r"version 2 of the document tower .* no query_tow"):
            load_part(fakes, "document", 2)
    version = publish_fakes(fakes)
    assert version == (3 if parts else 2)  # the number of a broken export is not used again
    with pytest.raises(InputError, match=f"no search model of version {version}"):
        load_part(fakes, "search", version)


@pytest.mark.parametrize(("step", "call", "parts"), FAULTS)
def test_leftovers_of_a_killed_export_are_hidden_and_the_next_export_deletes_them(
    fakes, tmp_path, monkeypatch, step, call, parts
):
    """A kill leaves what is on the disk at that moment, and no lock."""
    whole, path = tmp_path / "whole", tmp_path / "killed"
    with monkeypatch.context() as patch:
        inject(step, call, lambda: shutil.copytree(whole, path), patch.setattr)
        publish_fakes(whole, search=True)
    assert visible(path) == {f"{part}/1" for part in parts}
    (left,) = (name for name in names(path) - {LOCK, *PARTS} if name.startswith("."))
    with pytest.raises(InputError, match="there is no"):
        load_part(path, "document")
    version = 2 if parts else 1  # the number of a broken export is not used again
    assert publish_fakes(path, search=True) == version
    assert left not in names(path)
    for role in (*ROLES, "search"):
        assert load_part(path, role).manifest.version == version


def test_parts_of_a_version_that_do_not_belong_together_are_refused(fakes, tmp_path):
    publish_fakes(tmp_path / "b", seed=2, search=True)
    for part in ("document_tower", "search"):
        mixed = shutil.copytree(fakes, tmp_path / f"with other {part}")
        shutil.rmtree(mixed / part)
        shutil.copytree(tmp_path / "b" / part, mixed / part)
        role = "search" if part == "search" else "query"
        with pytest.raises(InputError, match="different training runs"):
            load_part(mixed, role)


def test_concurrent_export_is_refused(fakes):
    with (
        version_writer._only_export(fakes),
        pytest.raises(InputError, match="another export is writing there"),
    ):
        publish_fakes(fakes)
    assert publish_fakes(fakes) == 2


def test_whenever_the_process_or_the_power_goes_the_old_or_the_new_version_loads(
    fakes, monkeypatch
):
    """And a server of the policy `latest`, which knows no pairs; see export/serving/README.md.

    The query tower that it takes is never newer than what is found with it.
    """
    latest = {}

    def look():
        (version,) = {load_part(fakes, role).manifest.version for role in (*ROLES, "search")}
        assert latest_manifest(fakes).version == version  # what the local server serves
        found = [max(int(p.name) for p in (fakes / part).glob("[0-9]*")) for part in PARTS]
        latest[tuple(found)] = version

    with flushed_before_named(monkeypatch, look):
        publish_fakes(fakes, seed=1, search=True)
    assert PARTS == ("document_tower", "search", "query_tower")
    assert [*latest.items()] == [((2, 1, 1), 1), ((2, 2, 1), 1), ((2, 2, 2), 2)]


def test_next_version_follows_the_highest_and_ignores_other_names(tmp_path, no_child_process):
    for name in ("7", "old", ".8.x", "9.bak", "9" * 21, "08"):
        (part_dir(tmp_path, "query") / name).mkdir(parents=True)
    assert publish_fakes(tmp_path) == 8
    assert publish_fakes(tmp_path) == 9
    assert exported_versions(tmp_path, "document") == [8, 9]


def test_version_written_meanwhile_by_another_export_stays(tmp_path, fakes, monkeypatch):
    publish_fakes(tmp_path)
    before = [load_part(tmp_path, role).manifest for role in ROLES]
    with monkeypatch.context() as patch:
        patch.setattr(version_writer, "versions_newest_first", lambda *arguments: [])
        with pytest.raises(InputError, match="another export"):
            publish_fakes(tmp_path, seed=1)
    assert [load_part(tmp_path, role).manifest for role in ROLES] == before
    assert [exported_versions(tmp_path, role) for role in ROLES] == [[1], [1]]


@pytest.mark.parametrize("name", ["saved_model.pb", "manifest.json"])
@pytest.mark.parametrize("damaged", ROLES)
def test_all_parts_move_to_a_version_together_or_none_does(fakes, caplog, damaged, name):
    """Two runs served together would find nonsense; a restart takes the newest whole version."""
    assert publish_fakes(fakes, seed=1) == 2
    (part_dir(fakes, damaged) / "2" / name).write_bytes(b"four")
    with caplog.at_level("WARNING"):
        assert {load_part(fakes, role).manifest.version for role in ROLES} == {1}
    assert "Version 1 is used, not 2: " in caplog.text
    assert f"{DIRECTORIES[damaged]}/2" in caplog.text
    assert latest_manifest(fakes).version == 1
    with pytest.raises(InputError, match=f"{damaged}_tower/2"):
        load_part(fakes, damaged, 2)


FORK = """
import os, sys
import tensorflow as tf
from tf_smoothclir.publishing.export_directory import load_part
from tf_smoothclir.utils.errors import InputError

tf.constant(1)
if os.fork():
    os.wait()
else:
    try:
        load_part(sys.argv[1], "query")
    except InputError as error:
        print(error, flush=True)
    os._exit(0)
"""


@pytest.mark.slow
def test_a_model_in_a_forked_child_is_refused_in_words(export_dir):
    """The threads of TensorFlow are in the parent alone: it waited for ever."""
    command = [sys.executable, "-c", FORK, export_dir]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "forked from one in which TensorFlow had computed. Fork before" in done.stdout
