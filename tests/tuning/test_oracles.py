"""Oracles on an artificial metric: how many trials, which ones, and kills at any write."""

import collections
import json
import random

import numpy as np
import pytest

from tests.training.test_trainer import Killed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.tuning import oracles
from tf_smoothclir.tuning.oracles import ORACLES, trial_values
from tf_smoothclir.tuning.search_space import parse_thresholds, search_space
from tf_smoothclir.utils.errors import InputError

SPACE = search_space(["thresholds"], RunSettings())
PEAK = (0.3, 0.6)


def make(kind, path, max_trials=25, seed=7, space=SPACE):
    more = {"max_epochs": 9} if kind == "hyperband" else {}
    return ORACLES[kind](space, path, objective="NDCG@5", max_trials=max_trials, seed=seed, **more)


def score(values):
    """1 at the peak, less with the distance from it, and a little less with fewer epochs."""
    distance = np.abs(np.subtract(parse_thresholds(values["thresholds"]), PEAK)).sum()
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


@pytest.mark.parametrize(("kind", "asked"), [("grid", 25), ("random", 100), ("bayesian", 8)])
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
    tried = [
        thresholds(run(make("bayesian", tmp_path / str(seed), 20, seed=seed))) for seed in range(4)
    ]
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
@pytest.mark.parametrize("kind", ORACLES)
@pytest.mark.parametrize("seed", range(2))
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
                raise Killed
            write(path, value)
            if last:
                raise Killed

        monkeypatch.setattr(oracles, "write_json", write_or_die)
        with pytest.raises(Killed):
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
