"""The run directory: what is continued, refused, overwritten, kept; which file is damaged."""

import json
import os
import shutil
from unittest import mock

import pytest

from tests.cases import cases
from tests.command_line.forked import program
from tests.training.test_checkpoints import flip
from tf_smoothclir.settings.presets import changed, preset_settings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.folder import MANIFEST
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import InputError

UNUSUAL = changed(
    RunSettings(),
    {
        "data_dir": "/a b/ü",
        "split_seed": 0,
        "epsilon": 0.1 + 0.2,  # all 17 digits must survive
        "loss": "proportional_odds",
        "thresholds": (-0.5, 1 / 3, 0.9),
        "train_document_embeddings": False,
        "fresh_negatives": True,
        "learning_rate": 1e-30,
    },
)
PARTS = ["config.json", "grades.json", "hybrid.json", "lexical/lexical.json", "lexical/lexical.npz"]
PARTS += ["metrics.json", "trained_queries.digests"]
PARTS += ["vocabulary/document.txt", "vocabulary/query.txt"]
READ_FLAGS = """
import sys
from absl import flags
from tf_smoothclir.command_line import setting_flags

setting_flags.define_run_settings()
for line in sys.argv[1:]:
    flags.FLAGS.unparse_flags()
    flags.FLAGS(["program", *line.split()])
    print(setting_flags.run_settings_from_flags())
"""


def snapshot(path):
    return {
        str(file.relative_to(path)): (file.stat().st_mtime_ns, file.read_bytes())
        for file in sorted(path.rglob("*"))
        if file.is_file()
    }


def settings_by_flags(*lines):
    """What each line of flags gives, in a process of its own: flags belong to a whole process."""
    return program(READ_FLAGS, *lines)[0].splitlines()


def test_flags_txt_is_a_flag_file_that_gives_the_settings_back_and_flags_override_presets(tmp_path):
    given = {"unusual": UNUSUAL, "defaults": RunSettings()}
    runs = [RunDirectory.create(tmp_path / name, given[name]) for name in given]
    expected = {f"--flagfile={run.flags}": run.settings() for run in runs}
    expected["--preset=fast"] = RunSettings()
    small = {"dim": 64, "shared_vocabulary": False}
    expected["--dim=64 --noshared_vocabulary"] = changed(preset_settings("best"), small)
    lstm = preset_settings("paper", {"tower": "lstm", "epochs": 2})
    expected["--preset=paper --tower=lstm --epochs=2"] = lstm
    assert settings_by_flags(*expected) == list(map(str, expected.values()))
    assert runs[0].settings() == UNUSUAL


def test_settings_with_the_same_effect_find_the_run_again_and_change_nothing(tmp_path):
    RunDirectory.create(tmp_path, UNUSUAL)
    before = snapshot(tmp_path)
    other = changed(UNUSUAL, {"cache_dir": "elsewhere", "checkpoint_minutes": 1.0})
    for settings in (UNUSUAL, other):
        assert not RunDirectory.create(tmp_path, settings).finished
    assert RunDirectory.load(tmp_path).settings() == UNUSUAL
    assert snapshot(tmp_path) == before
    versions = json.loads((tmp_path / "config.json").read_text())["versions"]
    assert set(versions) == {"tf_smoothclir", "tensorflow", "python"}
    assert versions["tensorflow"].startswith("2.")


def test_a_run_with_a_setting_that_is_no_longer_there_is_refused_and_can_be_overwritten(tmp_path):
    run = RunDirectory.create(tmp_path / "run", RunSettings())
    config = json.loads(run.config.read_text())
    assert config["settings"]["training"]["distribution"] == "none"
    config["settings"]["training"]["distribution"] = "parameter_server"
    with run.writing(run.config) as path:
        path.write_text(json.dumps(config))
    for use in (run.settings, lambda: RunDirectory.create(run.path, RunSettings())):
        with pytest.raises(InputError, match=r"config.json: .* 'parameter_server'\. .* This"):
            use()
    assert RunDirectory.create(run.path, RunSettings(), overwrite=True).settings() == RunSettings()


def with_training(**changes):
    return changed(RunSettings(), changes)


def test_other_settings_are_refused_with_the_flag_and_both_values(tmp_path):
    run = RunDirectory.create(tmp_path, with_training(learning_rate=0.5, epochs=3))
    (run.checkpoints / "state-3").mkdir(parents=True)
    both = r"\(--learning_rate: 0\.5 there, 0\.25 here; --epochs: 3 there, 7 here\).*--overwrite"
    with pytest.raises(InputError, match=both):
        RunDirectory.create(tmp_path, with_training(learning_rate=0.25, epochs=7))


def test_run_without_a_checkpoint_starts_over_with_other_settings(tmp_path):
    # Such as after an error in the settings that shows only when the model is built.
    RunDirectory.create(tmp_path, with_training(epochs=3)).vocabulary.mkdir()
    run = RunDirectory.create(tmp_path, with_training(epochs=7))
    assert run.settings() == with_training(epochs=7)
    assert "--epochs=7" in run.flags.read_text()
    assert not run.vocabulary.exists()


def test_a_foreign_directory_is_refused_and_with_overwrite_written_beside(tmp_path):
    (tmp_path / "thesis.tex").write_text("years of work")
    before = snapshot(tmp_path)
    with pytest.raises(InputError, match=r"not empty and holds no run.*--overwrite"):
        RunDirectory.create(tmp_path, RunSettings())
    assert snapshot(tmp_path) == before
    assert RunDirectory.create(tmp_path, RunSettings(), overwrite=True).config.is_file()
    assert snapshot(tmp_path).items() > before.items()


@cases("name", "logs/mine.log", "report.md", "metrics.json", "flags.txt")
def test_overwrite_deletes_nothing_where_there_is_no_run(tmp_path, name):
    # Files that are called like those of a run, in a directory that never was one.
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    with pytest.raises(InputError, match=f"holds no run, but has {name.split('/')[0]}"):
        RunDirectory.create(tmp_path, RunSettings(), overwrite=True)
    assert file.read_text() == "mine"


def test_overwrite_deletes_the_run_and_nothing_else(tmp_path):
    run = RunDirectory.create(tmp_path, with_training(epochs=3))
    learned = (run.checkpoints, run.vocabulary, run.lexical, run.reranker, run.pseudo_queries)
    for directory in (*learned, run.logs, run.plots, run.evaluation):
        directory.mkdir()
        (directory / "file").touch()
    for file in (run.metrics, run.report, run.diverged_batch, run.fusion, run.cut_points):
        file.touch()
    (tmp_path / "notes.txt").write_text("keep")
    (tmp_path / "query_tower" / "1").mkdir(parents=True)

    run = RunDirectory.create(tmp_path, with_training(epochs=7), overwrite=True)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"flags.txt", "config.json", "manifest.json", "notes.txt", "query_tower"}
    assert run.settings().training.epochs == 7


def test_overwrite_that_was_killed_leaves_no_finished_run(tmp_path, monkeypatch):
    run = RunDirectory.create(tmp_path, RunSettings())
    run.checkpoints.mkdir()
    run.metrics.write_text("{}")
    assert run.finished
    monkeypatch.setattr("shutil.rmtree", mock.Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        RunDirectory.create(tmp_path, RunSettings(), overwrite=True)
    assert not RunDirectory.create(tmp_path, RunSettings()).finished


@cases("content", {"settings": {}}, {"settings": {}, "versions": {}}, {})
def test_config_json_that_lacks_something_is_refused_by_name(tmp_path, content):
    run = RunDirectory.create(tmp_path / "run", RunSettings())
    run.config.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"run/config\.json: .*This version cannot read the run"):
        run.settings()


@pytest.fixture
def path(ranking_runs, tmp_path):
    """Of a hybrid run, which has all kinds of files."""
    return shutil.copytree(ranking_runs["hybrid"].path, tmp_path / "run")


def test_all_files_that_are_read_again_are_noted(path):
    assert sorted(json.loads((path / MANIFEST).read_text())["files"]) == PARTS
    assert {"report.md", "flags.txt", "logs", "plots", "evaluation"} < {*os.listdir(path)}
    RunDirectory.load(path)


@cases("name", *PARTS)
@cases("damage", flip, lambda path: os.truncate(path, 5))
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
    assert RunDirectory.load(path).finished


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
