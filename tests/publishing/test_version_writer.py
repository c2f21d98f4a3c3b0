"""Publishing a version: all parts or none, verified in a fresh process, with its facts."""

import dataclasses
import shutil
import subprocess
import sys
import types
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import tensorflow as tf

from tests import disk_faults
from tests.cases import cases
from tests.published import FACTS, WORDS, NoVerifier, publish_small, small_tower
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder import Encoder
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing import export_directory, exported_tower, verification, version_writer
from tf_smoothclir.publishing.export_directory import ExportManifest, latest_manifest, load_part
from tf_smoothclir.publishing.exported_search import SearchModel
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage import files, folder
from tf_smoothclir.utils.errors import InputError

TEXTS = {role: [word.encode() for word in WORDS[role]] for role in ROLES}
EXPECTED = {
    "scores": tf.constant([[0.9, 0.5, 0.5, 0.1]]),
    "ids": tf.constant([["a", "b", "c", "d\xff".encode("latin-1")]]),
}
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
WHOLE = ExportManifest(
    role="query",
    version=3,
    pair_id="0" * 64,
    dim=2,
    epsilon=0.5,
    thresholds=(0.2, 0.7),
    data=DataSettings(toy_entities=300),
    cut_points=CutPoints((0.3, 0.6), (0.5, 0.9)),
    parts=("query", "document"),
)


class FakePart:
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
    return version_writer.publish_version(parts, path, FACTS, {role: [b"a text"] for role in ROLES})


def inject(step, call, fault, set_attribute):
    """Makes one call of a step of publishing run `fault` first."""
    owner, name = STEPS[step]
    set_attribute(owner, name, disk_faults.at_call(call, getattr(owner, name), fault))


@pytest.fixture
def fakes(no_child_process, monkeypatch, tmp_path):
    """A directory with version 1 of all parts; `load_part` checks them and loads nothing."""
    loaded = types.SimpleNamespace(signatures={"serving_default": types.SimpleNamespace()})
    monkeypatch.setattr(tf.saved_model, "load", lambda path: loaded)
    assert publish_fakes(tmp_path / "export", search=True) == 1
    return tmp_path / "export"


def visible(path):
    """What a server sees: part/version, for all names that do not begin with a dot."""
    return {f"{version.parent.name}/{version.name}" for version in path.glob("[!.]*/[!.]*")}


def names(path):
    return {child.name for child in path.iterdir()}


@cases("step, call, parts", *FAULTS)
def test_failure_leaves_no_half_version_nor_its_number(fakes, monkeypatch, step, call, parts):
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


@cases("step, call, parts", *FAULTS)
def test_what_a_kill_leaves_is_hidden_and_deleted(fakes, tmp_path, monkeypatch, step, call, parts):
    """A kill leaves what is on the disk at that moment, and no lock."""
    whole, path = tmp_path / "whole", tmp_path / "killed"
    with monkeypatch.context() as patch:
        inject(step, call, lambda: shutil.copytree(whole, path), patch.setattr)
        publish_fakes(whole, search=True)
    assert visible(path) == {f"{part}/1" for part in parts}
    hidden = {name for name in names(path) if name.startswith(".")}
    (left,) = hidden - {version_writer._LOCK}
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
        with pytest.raises(InputError, match="different training runs"):
            load_part(mixed, "search" if part == "search" else "query")


def test_concurrent_export_is_refused(fakes):
    other = files.locked(fakes / version_writer._LOCK, "", "", "")
    with other, pytest.raises(InputError, match="another export is writing there"):
        publish_fakes(fakes)
    assert publish_fakes(fakes) == 2


def test_whenever_process_or_power_goes_the_old_or_the_new_version_loads(fakes, monkeypatch):
    """And a server of the policy `latest`, which knows no pairs; see export/serving/README.md.

    The query tower that it takes is never newer than what is found with it.
    """
    latest = {}

    def look():
        (version,) = {load_part(fakes, role).manifest.version for role in (*ROLES, "search")}
        assert latest_manifest(fakes).version == version  # what the local server serves
        found = [max(int(p.name) for p in (fakes / part).glob("[0-9]*")) for part in PARTS]
        latest[tuple(found)] = version

    with disk_faults.flushed_before_named(monkeypatch, look):
        publish_fakes(fakes, seed=1, search=True)
    assert PARTS == ("document_tower", "search", "query_tower")
    assert [*latest.items()] == [((2, 1, 1), 1), ((2, 2, 1), 1), ((2, 2, 2), 2)]


def test_next_version_follows_the_highest_and_ignores_other_names(tmp_path, no_child_process):
    for name in ("7", "old", ".8.x", "9.bak", "9" * 21, "08"):
        (export_directory.part_dir(tmp_path, "query") / name).mkdir(parents=True)
    assert publish_fakes(tmp_path) == 8
    assert publish_fakes(tmp_path) == 9
    assert export_directory.exported_versions(tmp_path, "document") == [8, 9]


def test_version_written_meanwhile_by_another_export_stays(tmp_path, fakes, monkeypatch):
    publish_fakes(tmp_path)
    before = [load_part(tmp_path, role).manifest for role in ROLES]
    with monkeypatch.context() as patch:
        patch.setattr(version_writer, "versions_newest_first", lambda *arguments: [])
        with pytest.raises(InputError, match="another export"):
            publish_fakes(tmp_path, seed=1)
    assert [load_part(tmp_path, role).manifest for role in ROLES] == before
    assert [export_directory.exported_versions(tmp_path, role) for role in ROLES] == [[1], [1]]


@cases("name", "saved_model.pb", "manifest.json")
@cases("damaged", *ROLES)
def test_all_parts_move_to_a_version_together_or_none_does(fakes, caplog, damaged, name):
    """Two runs served together would find nonsense; a restart takes the newest whole version."""
    assert publish_fakes(fakes, seed=1) == 2
    (export_directory.part_dir(fakes, damaged) / "2" / name).write_bytes(b"four")
    assert {load_part(fakes, role).manifest.version for role in ROLES} == {1}
    assert "Version 1 is used, not 2: " in caplog.text
    assert f"{export_directory.DIRECTORIES[damaged]}/2" in caplog.text
    assert latest_manifest(fakes).version == 1
    with pytest.raises(InputError, match=f"{damaged}_tower/2"):
        load_part(fakes, damaged, 2)


@pytest.mark.slow
def test_a_model_in_a_forked_child_is_refused_in_words(export_dir):
    """The threads of TensorFlow are in the parent alone: it waited for ever."""
    command = [sys.executable, "-c", FORK, export_dir]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert "forked from one in which TensorFlow had computed. Fork before" in done.stdout


def test_towers_with_other_vectors_are_not_published(tmp_path, monkeypatch):
    path, other = tmp_path / "export", small_tower(tmp_path, "query", seed=99)
    with monkeypatch.context() as patch:
        encode = Encoder.encode
        patch.setattr(Encoder, "encode", lambda *arguments: encode(*arguments) + 1e-5)
        with pytest.raises(RuntimeError, match=r"tower without TensorFlow differs .* 1\..*e-05"):
            publish_small(tmp_path, path)
    save = exported_tower.ExportedTower.save
    monkeypatch.setattr(exported_tower.ExportedTower, "save", lambda tower, path: save(other, path))
    with pytest.raises(RuntimeError, match=r"query_tower, serving_default, differs .* by [01]"):
        publish_small(tmp_path, path)
    for role in ("query", "document"):
        assert export_directory.exported_versions(path, role) == []


def test_model_that_does_not_load_is_not_published(tmp_path, monkeypatch):
    def truncated(model, path, save=SearchModel.save):
        save(model, path)
        with open(f"{path}/variables/variables.data-00000-of-00001", "r+b") as file:
            file.truncate(5)

    monkeypatch.setattr(SearchModel, "save", truncated)
    with pytest.raises(RuntimeError, match="do not load and run:"):
        publish_small(tmp_path, tmp_path / "export")
    assert [path.name for path in (tmp_path / "export").iterdir()] == [".smoothclir-export.lock"]


def test_process_ends_with_the_exporter_even_if_nothing_was_sent():
    with verification.Verifier() as verifier:
        child = verifier._child
        assert child.poll() is None
    assert child.returncode is not None


def test_error_says_why_the_process_failed_at_the_start(monkeypatch, tmp_path):
    # Fills the pipe of standard error, and reads nothing.
    failing = "import sys; sys.exit('x' * 100_000 + ' no TensorFlow here')"
    monkeypatch.setattr(verification, "_LOAD_AND_RUN", failing)
    with verification.Verifier() as verifier:
        verifier._child.wait(timeout=60)
        verifier.send("query", small_tower(tmp_path, "query"), tmp_path, TEXTS)
        with pytest.raises(RuntimeError, match=r"(?s)do not load and run:.*no TensorFlow here"):
            verifier.compare()


@cases(
    "scores, ids, error",
    ([0.9, 0.5, 0.5, 0.1], ["a", "c", "b", "d\xff"], None),  # equal scores, by rounding
    ([0.9, 0.5, 0.5, 0.1], ["a", "b", "c", "e"], None),  # the fifth may be as near
    ([0.9, 0.5, 0.5, 0.1], ["x", "b", "c", "d\xff"], "finds other documents"),
    ([0.9, 0.500002, 0.5, 0.1], ["a", "b", "c", "d\xff"], "differs from the trained one"),
    ([0.9, np.nan, 0.5, 0.1], ["a", "b", "c", "d\xff"], "differs from the trained one by nan"),
)
def test_scores_may_differ_by_rounding_and_ids_among_equal_scores(scores, ids, error):
    found = {"scores": [scores], "ids": [ids]}
    if error is None:
        verification._compare("It", EXPECTED, found)
    else:
        with pytest.raises(RuntimeError, match=error):
            verification._compare("It", EXPECTED, found)


@cases(
    "changes, reason",
    ({"version": "3"}, "version must be an integer, not '3'"),
    ({"data": {"toy_entities": 1}}, "toy_entities"),
    ({"parts": []}, r"its entry 'parts' is \(\)"),
    ({"parts": ["q"]}, r"its entry 'parts' is \('q',\)"),
    ({"role": "search"}, "it has no documents or no depth"),
)
def test_facts_are_read_as_they_were_written_and_are_named_if_not_right(tmp_path, changes, reason):
    facts = {**dataclasses.asdict(WHOLE), **changes}
    folder.write_manifest(tmp_path, facts["role"], facts)
    with pytest.raises(InputError, match=rf"not a manifest of the kind .* \(.*{reason}.*\)"):
        ExportManifest.read(tmp_path)
    WHOLE.write(tmp_path)
    assert ExportManifest.read(tmp_path) == WHOLE
    with pytest.raises(InputError, match=r"of the kind 'document' \(its kind is 'query'\)"):
        ExportManifest.read(tmp_path, ["document"])
