"""Oracles on an artificial metric: how many trials, which ones, and kills at any write."""

import collections
import json
import random

import keras_tuner
import numpy as np
import pytest

from tf_smoothclir.settings.model import ModelSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.tuning import oracles
from tf_smoothclir.tuning.oracles import (
    BayesianOracle,
    GridOracle,
    HyperbandOracle,
    RandomOracle,
    trial_values,
)
from tf_smoothclir.tuning.search_space import SearchSpace, parse_thresholds
from tf_smoothclir.utils.errors import InputError

SPACE = SearchSpace.of(["thresholds"], RunSettings())
SEARCHES = {
    "grid": GridOracle,
    "random": RandomOracle,
    "bayesian": BayesianOracle,
    "hyperband": HyperbandOracle,
}
PEAK = (0.3, 0.6)


class KilledError(BaseException):
    """Stands for kill -9: no handler of the code under test catches it."""


def make(kind, path, max_trials=25, seed=7, space=SPACE):
    more = {"max_epochs": 9} if kind == "hyperband" else {}
    objective = keras_tuner.Objective("NDCG@5", "max")
    return SEARCHES[kind](
        space, path, objective=objective, max_trials=max_trials, seed=seed, **more
    )


def score(values):
    """1 at the peak, less with the distance from it, and a little less with fewer epochs."""
    distance = np.abs(np.subtract(parse_thresholds(values["thresholds"]), PEAK)).sum()
    return 1 - distance - 0.01 / values.get("epochs", 1)


def run(oracle, tuner_id="tuner0", most=1000):
    """Does what a tuner does, for at most some number of trials."""
    for _ in range(most):
        trial = oracle.create_trial(tuner_id)
        if trial.status == "STOPPED":
            break
        oracle.update_trial(trial.trial_id, {"NDCG@5": score(trial_values(trial))})
        trial.status = "COMPLETED"
        oracle.end_trial(trial)
    return oracle


def history(oracle):
    return [(t.trial_id, t.status, trial_values(t), t.score) for t in oracle.trials.values()]


@pytest.mark.parametrize("kind", ["grid", "random", "bayesian"])
@pytest.mark.parametrize("asked", [1, 25, 36, 100])
def test_trials_differ_and_are_as_many_as_asked_or_possible(tmp_path, kind, asked):
    oracle = run(make(kind, tmp_path / "state", asked))
    values = [t.hyperparameters.values["thresholds"] for t in oracle.trials.values()]
    assert len(set(values)) == len(values) == min(asked, 36)
    assert [t.trial_id for t in oracle.trials.values()] == [f"{i:04d}" for i in range(len(values))]
    assert {t.status for t in oracle.trials.values()} == {"COMPLETED"}


def test_grid_goes_in_order_and_random_does_not(tmp_path):
    grid, shuffled, other = (
        [t.hyperparameters.values["thresholds"] for t in run(oracle).trials.values()]
        for oracle in (
            make("grid", tmp_path / "1", 36),
            make("random", tmp_path / "2", 36),
            make("random", tmp_path / "3", 36, seed=8),
        )
    )
    assert grid[:3] == ["0.1,0.2", "0.1,0.3", "0.1,0.4"]
    assert sorted(shuffled) == grid != shuffled != other


def test_bayesian_finds_the_peak_with_fewer_trials_than_chance(tmp_path):
    found = []
    for seed in range(10):
        oracle = run(make("bayesian", tmp_path / str(seed), 14, seed=seed))
        best = oracle.get_best_trials(1)[0].hyperparameters.values["thresholds"]
        found.append(parse_thresholds(best) == PEAK)
    assert sum(found) >= 9  # chance: 14/36 each, so less than 1 in 800 for 9 of 10


def test_hyperband_gives_more_epochs_to_better_trials(tmp_path):
    oracle = run(make("hyperband", tmp_path / "state", 1000))
    # Brackets (Li et al. 2018, R = 9, eta = 3), trials of epochs: 9 of 1, 3 of 3, 1 of 9; 5 of 3,
    # 2 of 9; 3 of 9.
    epochs = collections.Counter(trial_values(t)["epochs"] for t in oracle.trials.values())
    assert epochs == {1: 9, 3: 3 + 5, 9: 1 + 2 + 3}
    trials = list(oracle.trials.values())
    first = sorted((t for t in trials[:9]), key=lambda t: t.score, reverse=True)
    promoted = {t.hyperparameters.values["thresholds"] for t in trials[9:12]}
    assert promoted == {t.hyperparameters.values["thresholds"] for t in first[:3]}
    begun = [t for t in trials if not _promoted(t)]
    assert len({t.hyperparameters.values["thresholds"] for t in begun}) == len(begun) == 9 + 5 + 3


def _promoted(trial):
    return "tuner/trial_id" in trial.hyperparameters.values


def test_too_small_a_space_for_hyperband_is_an_error(tmp_path):
    space = SearchSpace.of(["dim"], RunSettings(model=ModelSettings()))
    with pytest.raises(InputError, match="starts with 9 different trials, but --tune gives only 3"):
        make("hyperband", tmp_path / "state", space=space)


@pytest.mark.slow
@pytest.mark.parametrize("kind", SEARCHES)
@pytest.mark.parametrize("seed", range(4))
def test_killed_at_five_random_writes_it_ends_the_same(tmp_path, monkeypatch, kind, seed):
    expected = run(make(kind, tmp_path / "whole"))
    state, draw, write = tmp_path / "killed", random.Random(seed), oracles.write_json
    for _ in range(5):
        left, before = draw.randint(1, 9), draw.random() < 0.5
        counter = iter(range(left, -1, -1))

        def write_or_die(path, value, counter=counter, before=before):
            last = next(counter) == 0
            if last and before:
                raise KilledError
            write(path, value)
            if last:
                raise KilledError

        monkeypatch.setattr(oracles, "write_json", write_or_die)
        with pytest.raises(KilledError):
            run(make(kind, state))
    monkeypatch.setattr(oracles, "write_json", write)
    found = run(make(kind, state))
    assert history(found) == history(expected)
    assert len(found.trials) == min(25, len(expected.trials))
    assert found.get_best_trials(1)[0].trial_id == expected.get_best_trials(1)[0].trial_id


@pytest.mark.parametrize("kept", [0, 1, 0.5, 0.99])
def test_a_truncated_file_is_set_aside_and_the_same_trials_are_proposed(tmp_path, kept, caplog):
    state = tmp_path / "state"
    expected = history(run(make("bayesian", state, 12)))
    whole = state.read_bytes()
    state.write_bytes(whole[: kept if isinstance(kept, int) else int(kept * len(whole))])
    found = run(make("bayesian", state, 12))
    assert history(found) == expected
    assert (tmp_path / "state.damaged").is_file()
    assert json.loads(state.read_text())


def test_more_trials_continue_a_search_that_had_fewer(tmp_path):
    run(make("random", tmp_path / "state", 10))
    more = run(make("random", tmp_path / "state", 20))
    assert history(more) == history(run(make("random", tmp_path / "whole", 20)))


def test_a_second_worker_waits_while_the_last_trial_runs_and_takes_it_over(tmp_path):
    oracle = make("grid", tmp_path / "state", 1)
    trial = oracle.create_trial("first")
    assert oracle.create_trial("second").status == "IDLE"
    assert oracle.release("first") == trial.trial_id
    again = oracle.create_trial("second")
    assert (again.trial_id, again.status) == (trial.trial_id, "RUNNING")
    assert again.hyperparameters.values == trial.hyperparameters.values


def test_silent_workers_are_released_and_those_that_ask_are_not(tmp_path, monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(oracles.time, "monotonic", lambda: clock[0])
    oracle = make("grid", tmp_path / "state", 5)
    kept = oracle.create_trial("alive")
    lost = oracle.create_trial("dead")
    clock[0] = 60.0
    oracle.get_trial(kept.trial_id)
    clock[0] = 100.0
    assert oracle.release_silent(99.0) == ["dead"]
    assert oracle.release_silent(99.0) == []
    assert oracle.create_trial("next").trial_id == lost.trial_id


def test_a_late_result_counts_once_and_its_trial_is_not_handed_out_again(tmp_path):
    oracle = make("grid", tmp_path / "state", 2)
    late = oracle.create_trial("slow")
    oracle.release("slow")
    for _ in range(2):
        oracle.update_trial(late.trial_id, {"NDCG@5": 0.5})
        late.status = "COMPLETED"
        oracle.end_trial(late)
    assert oracle.end_order == [late.trial_id]
    assert oracle.create_trial("next").trial_id != late.trial_id
