"""The files of a run are those that training wrote, or the run says which is not."""

from __future__ import annotations

import json
import os
import shutil

import pytest

from tests.power_loss import PowerLoss, write_disk
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.folder import MANIFEST
from tf_smoothclir.training.run_config import RunConfig, RunData
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_files import check_run
from tf_smoothclir.training.train import train
from tf_smoothclir.utils.errors import InputError


@pytest.fixture(scope="module")
def trained(tiny, tmp_path_factory):
    """A finished hybrid run, which has all kinds of files; read-only."""
    path = tmp_path_factory.mktemp("run_files") / "run"
    train(tiny(retriever="hybrid", epochs=1), path)
    return path


@pytest.fixture
def path(trained, tmp_path):
    return shutil.copytree(trained, tmp_path / "run")


PARTS = [
    "config.json",
    "grades.json",
    "hybrid.json",
    "metrics.json",
    "vocabulary/query.txt",
    "vocabulary/document.txt",
    "lexical/lexical.json",
    "lexical/lexical.npz",
]


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def test_all_files_that_are_read_again_are_noted(trained):
    assert sorted(json.loads((trained / MANIFEST).read_text())["files"]) == sorted(PARTS)
    assert {"report.md", "flags.txt", "logs", "plots", "evaluation"} < {*os.listdir(trained)}
    RunDirectory.load(trained)


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


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("grades.json", r"grades\.json cannot be read"),
        ("vocabulary/query.txt", r"vocabulary/query\.txt cannot be read"),
        (MANIFEST, r"manifest\.json: .* or train again with --overwrite"),
    ],
)
def test_a_missing_file_is_named(path, name, message):
    (path / name).unlink()
    with pytest.raises(InputError, match=message):
        RunDirectory.load(path)


def test_without_metrics_a_run_is_to_be_continued_and_damaged_weights_are_named(path):
    (path / "metrics.json").unlink()
    assert not RunDirectory.load(path).finished
    flip(path / "checkpoints" / "best-1" / "variables.index")
    with pytest.raises(InputError, match=r"checkpoints: the best weights are damaged: variables"):
        RunDirectory.load(path)


def test_what_people_edit_and_parts_that_are_deleted_as_a_whole_are_not_missed(path):
    for name in ("report.md", "flags.txt", "notes.txt"):
        (path / name).write_text("edited")
    for name in ("plots", "checkpoints", "vocabulary", "lexical"):
        shutil.rmtree(path / name)
    RunDirectory.load(path)


def test_whenever_the_power_goes_the_run_is_whole(tmp_path, monkeypatch):
    run = RunDirectory.create(tmp_path / "run", RunSettings())
    with PowerLoss(run.path, monkeypatch) as losses:
        run.remember_data(RunData("name", "fingerprint"))
        with run.writing(run.vocabulary) as temporary:
            temporary.mkdir()
            (temporary / "query.txt").write_text("[PAD]\n")
        with run.writing(run.metrics) as temporary:
            temporary.write_text("{}")
    found = set()
    for number, disk in enumerate(losses.disks):
        directory = write_disk(disk, tmp_path / str(number))
        there = RunDirectory.load(directory)
        found.add((there.knows_data, there.vocabulary.is_dir(), there.finished))
        assert RunDirectory.create(directory, RunSettings()).settings() == RunSettings()
    assert found == {(False,) * 3, (True, False, False), (True, True, False), (True,) * 3}
    lasting = write_disk(losses.lasting, tmp_path / "lasting")
    check_run(lasting, finished=True, best=True)
    assert RunConfig.read(lasting / "config.json").data.name == "name"


def test_what_killed_processes_left_goes_when_the_run_continues(tmp_path):
    run = RunDirectory.create(tmp_path, RunSettings())
    run.checkpoints.mkdir()
    (tmp_path / ".metrics.json.0123abcd.new").write_text('{"a')
    (tmp_path / ".lexical.host.0123abcd.new" / "lexical").mkdir(parents=True)
    (run.checkpoints / ".state-3.host.0123abcd.new" / "new").mkdir(parents=True)
    RunDirectory.create(tmp_path, RunSettings())
    assert {*os.listdir(tmp_path)} == {"config.json", "flags.txt", MANIFEST, "checkpoints"}
    assert os.listdir(run.checkpoints) == []
