"""The files of a run are those that training wrote, or the run says which is not."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.training.test_checkpoints import flip
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.folder import MANIFEST
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import InputError


@pytest.fixture
def path(ranking_runs, tmp_path):
    """Of a hybrid run, which has all kinds of files."""
    return shutil.copytree(ranking_runs["hybrid"].path, tmp_path / "run")


PARTS = ["config.json", "grades.json", "hybrid.json", "lexical/lexical.json", "lexical/lexical.npz"]
PARTS += ["metrics.json", "vocabulary/document.txt", "vocabulary/query.txt"]


def test_all_files_that_are_read_again_are_noted(path):
    assert sorted(json.loads((path / MANIFEST).read_text())["files"]) == PARTS
    assert {"report.md", "flags.txt", "logs", "plots", "evaluation"} < {*os.listdir(path)}
    RunDirectory.load(path)


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("damage", [flip, lambda path: os.truncate(path, 5)])
def test_a_damaged_file_is_named_with_the_remedy(path, name, damage):
    damage(path / name)
    message = rf"/{name}: the run is damaged: {name} .*\. Restore it from a copy, or train again"
    with pytest.raises(InputError, match=message):
        RunDirectory.load(path)
    RunDirectory.load(path, verify=False)
    with pytest.raises(InputError, match=message):
        RunDirectory.create(path, RunDirectory(path).settings() if name != PARTS[0] else None)


def test_a_missing_file_is_named(path):
    for name, message in (
        ("vocabulary/query.txt", r"vocabulary/query\.txt cannot be read"),
        (MANIFEST, r"manifest\.json: .* or train again with --overwrite"),
    ):
        (path / name).unlink()
        with pytest.raises(InputError, match=message):
            RunDirectory.load(path)


def test_without_metrics_a_run_is_to_be_continued_and_damaged_weights_are_named(path):
    (path / "metrics.json").unlink()
    assert not RunDirectory.load(path).finished
    flip(path / "checkpoints" / "best-1" / "variables.index")
    with pytest.raises(InputError, match=r"best-1: it is damaged: variables"):
        RunDirectory.load(path)


def test_what_people_edit_and_parts_that_are_deleted_as_a_whole_are_not_missed(path):
    for name in ("report.md", "flags.txt", "notes.txt"):
        (path / name).write_text("edited")
    for name in ("plots", "checkpoints", "vocabulary", "lexical"):
        shutil.rmtree(path / name)
    RunDirectory.load(path)


def test_what_killed_processes_left_goes_when_the_run_continues(tmp_path):
    left = tmp_path / ".config.json.0123abcd.new"  # killed before its first file was whole
    left.write_text('{"sett')
    run = RunDirectory.create(tmp_path, RunSettings())
    assert not left.exists()
    run.checkpoints.mkdir()
    (tmp_path / ".metrics.json.0123abcd.new").write_text('{"a')
    (tmp_path / ".lexical.host.0123abcd.new" / "lexical").mkdir(parents=True)
    (run.checkpoints / ".state-3.host.0123abcd.new" / "new").mkdir(parents=True)
    RunDirectory.create(tmp_path, RunSettings())
    assert {*os.listdir(tmp_path)} == {"config.json", "flags.txt", MANIFEST, "checkpoints"}
    assert os.listdir(run.checkpoints) == []
