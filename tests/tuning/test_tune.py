"""Searches: the space, the oracles, and trials with kills, workers and mistakes."""

import collections
import csv
import dataclasses
import gc
import itertools
import json
import math
import random
import resource
import shutil
import signal
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases import cases
from tests.disk_faults import at_call
from tests.training import test_grades, test_run_directory, test_trainer
from tf_smoothclir.settings import presets, training
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.search import Search, searchable
from tf_smoothclir.storage.files import read_json
from tf_smoothclir.training import tasks, train
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_models
from tf_smoothclir.tuning import oracles, search_directory, tune, tuner
from tf_smoothclir.tuning import search_space as spaces
from tf_smoothclir.tuning.oracles import ORACLES, GridOracle, trial_values
from tf_smoothclir.tuning.search_space import combinations, search_space, with_values
from tf_smoothclir.tuning.tune import ENVIRONMENT, role, run_local_workers
from tf_smoothclir.two_tower.builder import configured_loss
from tf_smoothclir.utils.errors import InputError

SPACE = search_space(["thresholds"], RunSettings())
PEAK = (0.3, 0.6)
TRIALS = 3
RANDOM = Search(search="random")
SEARCH = Search(search="random", max_trials=TRIALS)


def settings_of(**changes):
    return presets.changed(RunSettings(), changes)


def points_of(names, **changes):
    return list(combinations(search_space(names, settings_of(**changes))))


@given(st.integers(1, 9))
def test_thresholds_are_in_order_inside_the_limits_and_all_different(number):
    found = spaces.threshold_tuples(number)
    assert len(set(found)) == len(found) == math.comb(max(11, number + 5), number)
    for thresholds in found:
        assert len(thresholds) == number
        assert all(low < high for low, high in itertools.pairwise((-1, *thresholds, 1)))
    # Of the paper, and the ends.
    assert {(0.2, 0.7), (0.0, 0.95)} <= set(spaces.threshold_tuples(2))


@given(st.sets(st.sampled_from([*searchable()]), min_size=1, max_size=3), st.integers(1, 3))
def test_every_point_is_different_and_makes_settings_that_can_be_used(names, number):
    rising = tuple(round((i + 1) / (number + 1), 6) for i in range(number))
    settings = settings_of(thresholds=rising, loss="cumulative_logits")
    every = combinations(search_space(sorted(names), settings))
    some = list(itertools.islice(every, 0, 2000, 97))
    assert len({repr(sorted(point.items())) for point in some}) == len(some)
    for point in some:
        found = with_values(settings, point)
        configured_loss(found)  # does not raise
        assert len(found.model.thresholds) == number


def test_towers_that_exclude_other_settings_are_left_out(built_in_alone):
    assert [point["tower"] for point in points_of(["tower"])] == ["average_pooling", "cnn", "lstm"]
    weighted = points_of(["epsilon", "tower"], token_weights="idf")
    assert {point["tower"] for point in weighted} == {"average_pooling"}
    with pytest.raises(InputError, match="nothing to choose from"):
        points_of(["tower"], token_weights="idf")


def test_values_of_a_trial_change_their_settings_and_no_others():
    values = {"thresholds": "0.1,0.35", "learning_rate": 0.03, "epochs": 7, "tuner/round": 1}
    found = with_values(settings_of(dim=16), values)
    assert found == settings_of(dim=16, thresholds=(0.1, 0.35), learning_rate=0.03, epochs=7)


def test_what_a_loss_ignores_or_cannot_be_used_with_is_not_searched_with_it():
    space = search_space(["thresholds", "epsilon"], settings_of())
    assert [(hp.name, len(hp.values)) for hp in space.space] == [("thresholds", 55), ("epsilon", 7)]
    points = points_of(["loss", "thresholds"])
    losses = [point["loss"] for point in points]
    assert losses.count("sosl") == 55
    assert [p for p in points if p["loss"] == "three_part_l2"] == [{"loss": "three_part_l2"}]
    losses = [point["loss"] for point in points_of(["loss", "temperature"])]
    assert losses.count("sosl") == 1
    assert losses.count("cumulative_logits") == len(searchable()["temperature"])

    assert {"loss": "softmax"} in points_of(["loss"], batching="lists")
    assert {"loss": "softmax"} not in points_of(["loss"])  # in batches of pairs
    two_grades = points_of(["loss"], thresholds=(0.5,))
    assert {"loss": "three_part_l2"} not in two_grades
    assert {"loss": "sosl"} in two_grades


@cases(
    "names, model, message",
    (["threshold"], {}, "'threshold' cannot be searched"),
    (["dim", "dim"], {}, "'dim' is named twice"),
    ([], {}, "nothing is named"),
    (["thresholds"], {"loss": "three_part_l2"}, "nothing to choose from with --loss=three_par"),
    (["loss"], {"thresholds": (0.2, 0.2)}, "--thresholds: thresholds must be strictly increas"),
)
def test_a_mistake_in_the_searched_names_or_in_thresholds_is_an_error(names, model, message):
    with pytest.raises(InputError, match=message):
        search_space(names, settings_of(**model))


def make(kind, path, max_trials=25, seed=7, space=SPACE):
    more = {"max_epochs": 9} if kind == "hyperband" else {}
    return ORACLES[kind](space, path, objective="NDCG@5", max_trials=max_trials, seed=seed, **more)


def score(values):
    """1 at the peak, less with the distance from it, and a little less with fewer epochs."""
    distance = np.abs(np.subtract(spaces.parse_thresholds(values["thresholds"]), PEAK)).sum()
    return 1 - distance - 0.01 / values.get("epochs", 1)


def run(oracle):
    while (trial := oracle.create_trial("tuner0")).status != "STOPPED":
        oracle.update_trial(trial.trial_id, {"NDCG@5": score(trial_values(trial))})
        trial.status = "COMPLETED"
        oracle.end_trial(trial)
    return oracle


def thresholds(oracle):
    return [trial.hyperparameters.values["thresholds"] for trial in oracle.trials.values()]


def history(oracle):
    return [(t.trial_id, t.status, trial_values(t), t.score) for t in oracle.trials.values()]


@cases("kind, asked", ("grid", 25), ("random", 100), ("bayesian", 8))
def test_trials_differ_and_are_as_many_as_asked_or_possible(tmp_path, kind, asked):
    oracle = run(make(kind, tmp_path / "state", asked))
    values = thresholds(oracle)
    assert len(set(values)) == len(values) == min(asked, 55)
    assert list(oracle.trials) == [f"{i:04d}" for i in range(len(values))]
    assert {t.status for t in oracle.trials.values()} == {"COMPLETED"}
    other = thresholds(run(make(kind, tmp_path / "other", 5, seed=8)))
    assert (other == values[:5]) == (values == sorted(values)) == (kind == "grid")


@pytest.mark.slow
def test_bayesian_tries_the_peak_sooner_than_chance(tmp_path):
    made = (make("bayesian", tmp_path / str(seed), 20, seed=seed) for seed in range(4))
    tried = [thresholds(run(oracle)) for oracle in made]
    assert all("0.3,0.6" in values for values in tried)  # chance: 20/55 each, 1 in 57 for all


def test_hyperband_gives_more_epochs_to_better_trials(tmp_path):
    oracle = run(make("hyperband", tmp_path / "state", 1000))
    # Brackets (Li et al. 2018, R = 9, eta = 3), trials of epochs: 9 of 1, 3 of 3, 1 of 9; 5 of 3,
    # 2 of 9; 3 of 9.
    epochs = collections.Counter(trial_values(t)["epochs"] for t in oracle.trials.values())
    assert epochs == {1: 9, 3: 3 + 5, 9: 1 + 2 + 3}
    trials, values = list(oracle.trials.values()), thresholds(oracle)
    first = sorted(range(9), key=lambda index: -trials[index].score)
    assert set(values[9:12]) == {values[index] for index in first[:3]}


@pytest.mark.slow
@cases("kind", *ORACLES)
@cases("seed", *range(2))
def test_killed_at_five_random_writes_it_ends_the_same(tmp_path, monkeypatch, kind, seed):
    asked = 9 if kind == "bayesian" else 25
    expected = run(make(kind, tmp_path / "whole", asked))
    state, draw, write = tmp_path / "killed", random.Random(seed), oracles.write_json
    for _ in range(5):
        left, before = draw.randint(1, asked // 3), draw.random() < 0.5
        counter = iter(range(left, -1, -1))

        def write_or_die(path, value, counter=counter, before=before):
            last = next(counter) == 0
            if last and before:
                raise test_trainer.Killed
            write(path, value)
            if last:
                raise test_trainer.Killed

        monkeypatch.setattr(oracles, "write_json", write_or_die)
        with pytest.raises(test_trainer.Killed):
            run(make(kind, state, asked))
    monkeypatch.setattr(oracles, "write_json", write)
    assert history(run(make(kind, state, asked))) == history(expected)


def test_more_trials_continue_a_search_and_a_damaged_file_says_what_to_do(tmp_path):
    state = tmp_path / "state"
    expected = history(run(make("random", tmp_path / "whole", 20)))
    run(make("random", state, 10))
    assert history(run(make("random", state, 20))) == expected
    state.write_text(state.read_text()[:-100])
    with pytest.raises(InputError, match=r"it is damaged .*\. Delete it and give the same command"):
        make("random", state, 20)
    state.unlink()
    assert history(run(make("random", state, 20))) == expected
    assert json.loads(state.read_text())


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
    found = test_run_directory.settings_by_flags(f"--flagfile={output_dir}/best.flags")
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
    settings = test_grades.write_set(tmp_path / "binary", highest=1)
    (tmp_path / "out").mkdir()
    search_directory.open_search(tmp_path / "out", settings, Search())  # of two thresholds
    given = [f"--data_dir={settings.data.data_dir}", f"--cache_dir={tmp_path}/cache"]
    done = commands.run("trainers.tune", *given, f"--output_dir={tmp_path}/out")
    assert done.returncode != 0
    assert "--thresholds: 0.2,0.7 there, 0.45 here" in done.stderr


def test_the_same_command_trains_nothing_again(searched, settings, monkeypatch, tmp_path):
    output_dir, results = searched
    monkeypatch.setattr(tuner, "trainer_of", None)
    before = test_run_directory.snapshot(output_dir / "trials")
    assert tune.tune(settings, SEARCH, output_dir) == results
    assert test_run_directory.snapshot(output_dir / "trials") == before
    copy = shutil.copytree(output_dir, tmp_path / "copy")
    (copy / "oracle.json").unlink()  # the trials have metrics of their own
    assert tune.tune(settings, SEARCH, copy) == results


@cases("call", pytest.param(1, marks=pytest.mark.slow), 3)
def test_a_search_that_was_killed_loses_no_trial(searched, settings, tmp_path, monkeypatch, call):
    """Killed when a trial is trained, but not noted."""
    killed = at_call(call, tuner.write_json, mock.Mock(side_effect=test_trainer.Killed))
    monkeypatch.setattr(tuner, "write_json", killed)
    with pytest.raises(test_trainer.Killed):
        tune.tune(settings, SEARCH, tmp_path)
    results = tune.tune(settings, SEARCH, tmp_path)
    for of_both in zip(results, searched[1], strict=True):
        one, other = (dataclasses.replace(result, seconds=0.0) for result in of_both)
        assert one == other
    assert (tmp_path / "best.flags").read_text() == (searched[0] / "best.flags").read_text()
    models = [path.parent.name for path in (tmp_path / "trials").glob("*/checkpoints")]
    assert models == [results[0].id]


@cases(
    "search, changes, overwrite, message",
    (Search(search="grid"), {}, False, "--search: random there, grid here"),
    (RANDOM, {"dim": 5}, False, "--dim: 4 there, 5 here"),
    (RANDOM, {"data_dir": "/nowhere"}, True, "there is no such file or directory"),
    (Search(("epsilon",), "hyperband"), {"epochs": 30}, True, "starts with 34 different"),
    (RANDOM, {"token_weights": "idf", "tower": "cnn"}, True, "--token_weights=idf --tower="),
    (RANDOM, {"init_from": "run"}, True, "--init_from: the trials of a search begin anew"),
)
def test_a_mistake_leaves_a_search_alone(tiny, searched, search, changes, overwrite, message):
    path, before = searched[0], test_run_directory.snapshot(searched[0])
    with pytest.raises(InputError, match=message):
        tune.tune(tiny(select_metric="MAP", **changes), search, path, overwrite=overwrite)
    assert test_run_directory.snapshot(path) == before


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
    with search_directory.only_search(tmp_path), pytest.raises(InputError, match=message):
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
    assert results[1].metrics == dict.fromkeys(training.METRICS, 0.0)


def test_any_other_error_ends_the_search(settings, tmp_path, monkeypatch):
    error = OSError("no space left on device")
    monkeypatch.setattr(tuner, "trainer_of", mock.Mock(side_effect=error))
    with pytest.raises(OSError, match="no space left"):
        tune.tune(settings, Search(), tmp_path / "out")
    assert not (tmp_path / "out" / "trials.csv").exists()


@pytest.mark.slow
def test_memory_does_not_grow_over_the_trials(tiny, tmp_path, monkeypatch):
    used, original = [], tuner.train_trial

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
    results = tune.tune(fixed, Search(("epsilon",), "random", max_trials=2), tmp_path / "out")
    assert len({result.values["epsilon"] for result in results}) == 2
    expected = train.train(with_values(fixed, results[0].values), tmp_path / "run")
    assert results[0].metrics == {name: expected["validation"][name] for name in training.METRICS}
    assert results[0].best_epoch == 1
    kept = {path.parent.name for path in (tmp_path / "out" / "trials").glob("*/lexical")}
    assert kept == {results[0].id}
    load_models(RunDirectory.load(tmp_path / "out" / "trials" / results[0].id))  # does not raise


def fail(message):
    raise InputError(message)


@pytest.mark.slow
@cases(
    "work, end",
    ((signal.raise_signal, signal.SIGKILL), "was killed 3 times"),
    ((fail, "no data"), "failed with exit code 1"),
)
def test_a_worker_that_cannot_work_ends_the_search(tmp_path, work, end):
    oracle = GridOracle(SPACE, tmp_path / "state", objective="MAP", max_trials=3, seed=1)

    def make_tuner():
        assert role() == "chief"
        return tuner.TrialTuner(oracle, None, [], tmp_path)

    with pytest.raises(InputError, match=f"worker0 {end}"):
        run_local_workers(make_tuner, 1, *work)
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
