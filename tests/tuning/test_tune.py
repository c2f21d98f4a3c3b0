"""Searches on the tiny set: trials, tables, disk, memory, mistakes; workers in processes."""

import csv
import dataclasses
import gc
import os
import resource
import shutil
import signal
from unittest import mock

import pytest

from tests.nth_call import at_call
from tests.training.test_grades import write_set
from tests.training.test_run_directory import settings_by_flags, snapshot
from tests.training.test_trainer import Killed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import Search, searchable
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training import tasks, train
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.tuning import tune, tuner
from tf_smoothclir.tuning.oracles import GridOracle
from tf_smoothclir.tuning.search_directory import only_search
from tf_smoothclir.tuning.search_space import search_space, with_values
from tf_smoothclir.tuning.tune import ENVIRONMENT, role, run_local_workers
from tf_smoothclir.tuning.tuner import TrialTuner
from tf_smoothclir.utils.errors import InputError

TRIALS = 3
RANDOM = Search(search="random")
SEARCH = Search(search="random", max_trials=TRIALS)


@pytest.fixture(scope="module")
def settings(tiny):
    return tiny(select_metric="MAP")


@pytest.fixture(scope="module")
def searched(settings, tmp_path_factory):
    """The directory of a search of three trials, and its trials; read only."""
    output_dir = tmp_path_factory.mktemp("tune") / "out"
    return output_dir, tune.tune(settings, SEARCH, output_dir)


def test_tables_have_every_trial_with_the_best_of_the_objective_first(searched):
    output_dir, results = searched
    assert len({result.values["thresholds"] for result in results}) == TRIALS
    scores = [result.metrics["MAP"] for result in results]
    assert scores == sorted(scores, reverse=True)
    rows = list(csv.reader((output_dir / "trials.csv").open()))
    assert rows[0][:4] == ["trial", "thresholds", "MAP", "P_mr@1"]
    expected = [[r.id, r.values["thresholds"], f"{r.metrics['MAP']:.4f}"] for r in results]
    assert [row[:3] for row in rows[1:]] == expected
    page = (output_dir / "trials.md").read_text()
    assert all(f"| {r.id} | {r.values['thresholds']} |" in page for r in results)
    assert (output_dir / "heatmap.png").read_bytes().startswith(b"\x89PNG")
    best = read_json(output_dir / "best.json")
    assert best["trial"] == results[0].id
    assert (best["objective"], best["score"]) == ("MAP", results[0].metrics["MAP"])
    assert (best["trials"], best["folds"], best["values"]) == (TRIALS, 0, results[0].values)


def test_best_flags_are_read_as_the_settings_of_the_best_trial(searched, settings):
    output_dir, results = searched
    found = settings_by_flags(f"--flagfile={output_dir}/best.flags")
    assert found == [str(with_values(settings, results[0].values))]


def test_a_trial_is_a_training_and_only_the_best_keeps_its_model(searched, settings, tmp_path):
    output_dir, results = searched
    result = train.train(with_values(settings, results[0].values), tmp_path / "run")
    own = read_json(output_dir / "trials" / results[0].id / "metrics.json")
    assert own["history"] == result["history"]
    best = result["history"][result["training"]["best_epoch"] - 1]["validation"]
    assert results[0].metrics == best
    with_model = {path.parent.name for path in (output_dir / "trials").glob("*/checkpoints")}
    assert with_model == {results[0].id}
    tasks.load_model(RunDirectory.load(output_dir / "trials" / results[0].id))  # does not raise
    for result in results:
        events = b"".join(p.read_bytes() for p in (output_dir / "logs" / result.id).iterdir())
        assert result.values["thresholds"].encode() in events
        assert b"_hparams_/session_start_info" in events
        assert b"trial/MAP" in events


def test_thresholds_are_as_many_as_the_grades_of_the_set_need(tmp_path, commands):
    settings = write_set(tmp_path / "binary", highest=1)
    (tmp_path / "out").mkdir()
    tune.open_search(tmp_path / "out", settings, Search())  # of two thresholds
    given = [f"--data_dir={settings.data.data_dir}", f"--cache_dir={tmp_path}/cache"]
    done = commands.run("trainers.tune", *given, f"--output_dir={tmp_path}/out")
    assert done.returncode != 0
    assert "--thresholds: 0.2,0.7 there, 0.45 here" in done.stderr


def test_the_same_command_trains_nothing_again(searched, settings, monkeypatch, tmp_path):
    output_dir, results = searched
    monkeypatch.setattr(tuner, "trainer_of", None)
    before = snapshot(output_dir / "trials")
    assert tune.tune(settings, SEARCH, output_dir) == results
    assert snapshot(output_dir / "trials") == before
    copy = shutil.copytree(output_dir, tmp_path / "copy")
    (copy / "oracle.json").unlink()  # the trials have metrics of their own
    assert tune.tune(settings, SEARCH, copy) == results


@pytest.mark.parametrize("call", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_a_search_that_was_killed_loses_no_trial(searched, settings, tmp_path, monkeypatch, call):
    """Killed when a trial is trained, but not noted."""
    killed = at_call(call, tuner.write_json, mock.Mock(side_effect=Killed))
    monkeypatch.setattr(tuner, "write_json", killed)
    with pytest.raises(Killed):
        tune.tune(settings, SEARCH, tmp_path)
    results = tune.tune(settings, SEARCH, tmp_path)
    for of_both in zip(results, searched[1], strict=True):
        one, other = (dataclasses.replace(result, seconds=0.0) for result in of_both)
        assert one == other
    best = (searched[0] / "best.flags").read_text()
    assert (tmp_path / "best.flags").read_text() == best
    models = [path.parent.name for path in (tmp_path / "trials").glob("*/checkpoints")]
    assert models == [results[0].id]


@pytest.mark.parametrize(
    ("search", "changes", "overwrite", "message"),
    [
        (Search(search="grid"), {}, False, "--search: random there, grid here"),
        (RANDOM, {"dim": 5}, False, "--dim: 4 there, 5 here"),
        (RANDOM, {"data_dir": "/nowhere"}, True, "there is no such file or directory"),
        (Search(("epsilon",), "hyperband"), {"epochs": 30}, True, "starts with 34 different"),
        (RANDOM, {"token_weights": "idf", "tower": "cnn"}, True, "--token_weights=idf --tower="),
    ],
)
def test_a_mistake_leaves_a_search_alone(tiny, searched, search, changes, overwrite, message):
    path, before = searched[0], snapshot(searched[0])
    with pytest.raises(InputError, match=message):
        tune.tune(tiny(select_metric="MAP", **changes), search, path, overwrite=overwrite)
    assert snapshot(path) == before


def test_overwrite_starts_over_a_search_and_nothing_else(searched, settings, tmp_path):
    copy, one = shutil.copytree(searched[0], tmp_path / "copy"), Search(search="grid", max_trials=1)
    assert len(tune.tune(settings, one, copy, overwrite=True)) == 1
    assert [path.name for path in (copy / "trials").iterdir()] == ["0000"]
    (tmp_path / "run" / "logs").mkdir(parents=True)
    with pytest.raises(InputError, match="it holds no search, but logs"):
        tune.tune(settings, one, tmp_path / "run", overwrite=True)
    assert (tmp_path / "run" / "logs").is_dir()


def test_two_searches_do_not_share_a_directory(tiny, settings, searched, tmp_path, monkeypatch):
    message = "another search is running"
    with only_search(tmp_path), pytest.raises(InputError, match=message):
        tune.tune(settings, Search(), tmp_path)
    for name, value in zip(ENVIRONMENT, ("tuner0", "127.0.0.1", "1")):
        monkeypatch.setenv(name, value)
    with pytest.raises(InputError, match=r"search with other settings \(--learning_rate: "):
        tune.tune(tiny(select_metric="MAP", learning_rate=0.5), SEARCH, searched[0])


def test_folds_are_averaged_and_leave_no_model(tiny, tmp_path):
    results = tune.tune(tiny(), Search(search="grid", max_trials=1, folds=2), tmp_path / "out")
    trial = tmp_path / "out" / "trials" / "0000"
    each = [read_json(path) for path in sorted(trial.glob("fold*/metrics.json"))]
    assert len(each) == 2
    mean = sum(fold["validation"]["NDCG@5"] for fold in each) / 2
    assert results[0].metrics["NDCG@5"] == pytest.approx(mean)
    assert not list(trial.glob("**/checkpoints"))


@pytest.mark.slow
def test_hyperband_trains_for_the_epochs_of_the_bracket(tiny, tmp_path):
    results = tune.tune(tiny(epochs=3), Search(search="hyperband", max_trials=4), tmp_path / "out")
    assert {result.values["epochs"] for result in results} == {1, 3}
    for result in results:
        written = read_json(tmp_path / "out" / "trials" / result.id / "metrics.json")
        assert len(written["history"]) == result.values["epochs"]


def test_a_diverged_trial_has_metrics_of_0_and_the_search_goes_on(tiny, tmp_path, monkeypatch):
    values = {**searchable(), "learning_rate": (3e38, 0.1)}
    monkeypatch.setattr("tf_smoothclir.tuning.search_space.searchable", lambda: values)
    results = tune.tune(tiny(clip_norm=0.0), Search(("learning_rate",), "grid"), tmp_path / "out")
    assert [result.diverged for result in results] == [False, True]
    assert results[1].metrics == dict.fromkeys(METRICS, 0.0)


def test_any_other_error_ends_the_search(settings, tmp_path, monkeypatch):
    error = OSError("no space left on device")
    monkeypatch.setattr(tuner, "trainer_of", mock.Mock(side_effect=error))
    with pytest.raises(OSError, match="no space left"):
        tune.tune(settings, Search(), tmp_path / "out")
    assert not (tmp_path / "out" / "trials.csv").exists()


@pytest.mark.slow
def test_memory_does_not_grow_over_the_trials(tiny, tmp_path, monkeypatch):
    used = []
    original = tuner.train_trial

    def watched(*arguments):
        result = original(*arguments)
        gc.collect()
        with open("/proc/self/statm") as statm:
            used.append(int(statm.read().split()[1]) * resource.getpagesize() / 2**20)
        return result

    monkeypatch.setattr(tuner, "train_trial", watched)
    # A model has 2 x 11 x 16,000 floats, 1.3 MB, and lazy Adam twice as many: 4 MB for each trial
    # that stayed. The allocator's own use varies by some MB.
    tune.tune(tiny(epochs=1, dim=16_000), Search(search="grid", max_trials=8), tmp_path / "out")
    growth = max(used[4:]) - max(used[:4])  # 16 MB if all stayed
    assert growth < 2 * 4, f"{growth:.1f} MB: {used}"


@pytest.mark.slow
def test_trials_of_a_hybrid_have_its_metrics(tiny, tmp_path):
    fixed = tiny(retriever="hybrid", epochs=1, select_metric="MAP")
    search = Search(("epsilon",), "random", max_trials=2)
    results = tune.tune(fixed, search, tmp_path / "out")
    assert len({result.values["epsilon"] for result in results}) == 2
    expected = train.train(with_values(fixed, results[0].values), tmp_path / "run")
    assert results[0].metrics == {name: expected["validation"][name] for name in METRICS}
    assert results[0].best_epoch == 1
    kept = {path.parent.name for path in (tmp_path / "out" / "trials").glob("*/lexical")}
    assert kept == {results[0].id}
    load_models(RunDirectory.load(tmp_path / "out" / "trials" / results[0].id))  # does not raise


def die(directory):
    os.kill(os.getpid(), signal.SIGKILL)


def fail(directory):
    raise InputError("no data")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "message"),
    [(die, "worker0 was killed 3 times"), (fail, "worker0 failed with exit code 1")],
)
def test_a_worker_that_cannot_work_ends_the_search(tmp_path, function, message):
    space = search_space(["thresholds"], RunSettings())
    oracle = GridOracle(space, tmp_path / "state", objective="MAP", max_trials=3, seed=1)

    def make_tuner():
        assert role() == "chief"
        return TrialTuner(oracle, None, [], tmp_path)

    with pytest.raises(InputError, match=message):
        run_local_workers(make_tuner, 1, function, tmp_path)
    assert role() == ""


def test_the_environment_of_keras_tuner_gives_the_role(monkeypatch):
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    assert role() == ""
    for name, value in zip(ENVIRONMENT, ("chief", "127.0.0.1", "8000")):
        monkeypatch.setenv(name, value)
    assert role() == "chief"
    monkeypatch.setenv(ENVIRONMENT[0], "tuner0")
    assert role() == "worker"
    monkeypatch.delenv(ENVIRONMENT[2])
    with pytest.raises(InputError, match="KERASTUNER_ORACLE_PORT is missing"):
        role()
