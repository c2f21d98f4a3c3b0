"""Oracles: they propose the next point of the space and keep the trials so far.

Each proposal is a function of the seed, the space and the finished trials, and every change is
written atomically. So a killed search continues as if it had not been interrupted.
"""

from __future__ import annotations

import collections
import functools
import json
import os
import time
from pathlib import Path

import keras_tuner
import numpy as np
from absl import logging
from keras_tuner.engine.trial import TrialStatus

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.tuning.gaussian_process import most_promising
from tf_smoothclir.tuning.search_space import SearchSpace
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.files import read_json, write_json

_BAYESIAN_CANDIDATES = 20_000  # limits the memory of a proposal


def _one_at_a_time(method):
    """Serializes the calls of several workers; keras-tuner's decorator drops the docstring."""
    return functools.wraps(method)(keras_tuner.synchronized(method))


class DurableOracle(keras_tuner.Oracle):
    """Keeps all trials in one file, resumes interrupted ones, and honours `max_trials` exactly.

    keras-tuner's oracles write one file for each trial and one more, each in place; after a kill
    in between, the files disagree. This class is a base on its own or in front of one of them.
    """

    def __init__(self, space: SearchSpace, path: Path, *, max_trials: int, seed: int, **kwargs):
        super().__init__(
            hyperparameters=space.hyperparameters(),
            allow_new_entries=False,
            seed=seed + 1,  # for keras-tuner, 0 is no seed
            **kwargs,
        )
        self.verbose = 0
        self.space = space
        self.trial_limit = max_trials
        self.order = permutation(len(space.points), seed)
        self._path = path
        self._heard: dict[str, float] = {}
        if path.is_file():
            self.reload()

    def save(self) -> None:
        """Writes the whole state to one file."""
        trials = [trial.get_state() for trial in self.trials.values()]
        write_json(self._path, {**self.get_state(), "trials": trials})

    def reload(self) -> None:
        """Reads the state; interrupted trials will be handed out first.

        A damaged file is set aside. Then the trials are proposed again in the same order, and those
        whose metrics are in their own directories are not trained again.
        """
        try:
            state = read_json(self._path)
            trials = [keras_tuner.engine.trial.Trial.from_state(t) for t in state["trials"]]
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
            aside = self._path.with_name(f"{self._path.name}.damaged")
            os.replace(self._path, aside)
            logging.warning(
                "%s is damaged (%s) and was renamed to %s. Finished trials are read from their own"
                " directories.",
                self._path,
                error,
                aside,
            )
            return
        self.trials = {trial.trial_id: trial for trial in trials}
        self.set_state(state)
        for tuner_id, trial in sorted(self.ongoing_trials.items(), reverse=True):
            if trial.trial_id in self.end_order:  # keras-tuner saves before it removes them
                del self.ongoing_trials[tuner_id]
            else:
                self._give_back(tuner_id)

    def _save_trial(self, trial) -> None:
        """Writes nothing: keras-tuner's file for each trial is replaced by `save`."""

    def _set_project_dir(self, directory, project_name) -> None:
        """Does nothing: keras-tuner's directory is not needed."""

    @_one_at_a_time
    def create_trial(self, tuner_id):
        """The next trial; see `keras_tuner.Oracle`."""
        self._heard[tuner_id] = time.monotonic()
        return super().create_trial(tuner_id)

    @_one_at_a_time
    def get_trial(self, trial_id):
        """A trial; also tells that the tuner which runs it is alive."""
        for tuner_id, trial in self.ongoing_trials.items():
            if trial.trial_id == trial_id:
                self._heard[tuner_id] = time.monotonic()
        return super().get_trial(trial_id)

    @_one_at_a_time
    def end_trial(self, trial):
        """Records the result; a trial that two tuners ran counts once, with equal results."""
        if trial.trial_id in self.end_order:
            return
        if trial.trial_id in self._retry_queue:  # its tuner was taken for dead
            self._retry_queue.remove(trial.trial_id)
        super().end_trial(trial)
        trial = self.trials[trial.trial_id]
        best = self.get_best_trials(1)[0]
        done = len(self.end_order)
        logging.info(
            "Trial %s (%d of at most %d): %s: %s %.4f; best so far %.4f (trial %s)",
            trial.trial_id,
            done,
            self.trial_limit,
            " ".join(f"--{name}={value}" for name, value in trial_values(trial).items()),
            self.objective.name,
            trial.score,
            best.score,
            best.trial_id,
        )

    def populate_space(self, trial_id):
        """The values of a new trial; see `keras_tuner.Oracle`."""
        proposal = {"status": TrialStatus.STOPPED}
        if len(self.trials) < self.trial_limit:
            proposal = self.propose(trial_id)
        if proposal["status"] == TrialStatus.STOPPED and self.ongoing_trials:
            return {"status": TrialStatus.IDLE}  # the tuner may have to take one over
        return proposal

    def propose(self, trial_id: str) -> dict:
        """The "status" and, if that is "RUNNING", the "values" of a new trial."""
        return super().populate_space(trial_id)

    @_one_at_a_time
    def release(self, tuner_id: str) -> str | None:
        """Forgets a dead tuner; returns the id of its trial, which is handed out again."""
        self.tuner_ids.discard(tuner_id)
        self._heard.pop(tuner_id, None)
        if tuner_id not in self.ongoing_trials:
            return None
        return self._give_back(tuner_id)

    def release_silent(self, seconds: float) -> list[str]:
        """Forgets the tuners that have been silent for longer, and returns their ids."""
        now = time.monotonic()
        silent = [tuner_id for tuner_id, heard in self._heard.items() if now - heard > seconds]
        silent = [t for t in silent if t in self.tuner_ids or t in self.ongoing_trials]
        for tuner_id in silent:
            self.release(tuner_id)
        return silent

    def _give_back(self, tuner_id: str) -> str:
        trial = self.ongoing_trials.pop(tuner_id)
        trial.metrics = type(trial.metrics)()  # maybe reported, but the trial has not ended
        self._retry_queue.append(trial.trial_id)
        return trial.trial_id

    def tried(self) -> list[int]:
        """The index of each trial's point, in the order of the trials."""
        place = {point: index for index, point in enumerate(self.space.points)}
        names = self.space.names
        return [
            place[tuple(trial.hyperparameters.values[name] for name in names)]
            for trial in self.trials.values()
        ]


def _running(oracle: DurableOracle, point: int) -> dict:
    return {"status": TrialStatus.RUNNING, "values": oracle.space.values(int(point))}


class GridOracle(DurableOracle):
    """Tries every point, in the order of the space, as the paper does."""

    def propose(self, trial_id):
        """Proposes the point after the last one."""
        if len(self.trials) == len(self.space.points):
            return {"status": TrialStatus.STOPPED}
        return _running(self, len(self.trials))


class RandomOracle(DurableOracle):
    """Tries points in random order, each once."""

    def propose(self, trial_id):
        """Proposes the next point of a permutation."""
        if len(self.trials) == len(self.space.points):
            return {"status": TrialStatus.STOPPED}
        return _running(self, self.order[len(self.trials)])


class BayesianOracle(DurableOracle):
    """Tries some random points, then those a Gaussian process favours; each point once."""

    def propose(self, trial_id):
        """Proposes the untried point with the highest upper confidence bound."""
        tried = self.tried()
        if len(tried) == len(self.space.points):
            return {"status": TrialStatus.STOPPED}
        untried = self.order[~np.isin(self.order, tried)][:_BAYESIAN_CANDIDATES]
        scores = [trial.score for trial in self.trials.values()]
        known = [score for score in scores if score is not None]
        if len(known) < max(5, 3 * len(self.space.names)):
            return _running(self, untried[0])
        mean = float(np.mean(known))  # stands in for the trials that other workers still run
        scores = np.array([mean if score is None else score for score in scores])
        features = self.space.features()
        best = most_promising(features[tried], scores, features[untried])
        return _running(self, untried[best])


class HyperbandOracle(DurableOracle, keras_tuner.oracles.HyperbandOracle):
    """keras-tuner's Hyperband (Li et al. 2018): many short trials, longer ones for the best.

    The points of a bracket differ; the least tried points come first.
    """

    def __init__(self, space: SearchSpace, path: Path, *, max_epochs: int, **kwargs):
        super().__init__(space, path, max_epochs=max_epochs, **kwargs)
        last = self._get_num_brackets() - 1
        needed = self._get_size(last, 0)
        if len(space.points) < needed:
            raise input_error(
                "--search=hyperband",
                f"with --epochs={max_epochs} it starts with {needed} different trials, but --tune"
                f" gives only {len(space.points)}",
                "Name more settings in --tune, lower --epochs, or use --search=grid",
            )

    def _random_trial(self, trial_id, bracket):
        self._begun = {entry["id"] for entry in bracket["rounds"][0]}
        return super()._random_trial(trial_id, bracket)

    def _random_values(self):
        """The next values for a bracket; keras-tuner's method fails on a small space."""
        tried = dict(zip(self.trials, self.tried()))
        times = collections.Counter(tried.values())
        here = {tried[trial_id] for trial_id in self._begun}
        best = min(map(int, self.order), key=lambda point: (point in here, times[point]))
        return self.space.values(best)


def trial_values(trial) -> dict:
    """The settings of a trial, with Hyperband including its epochs."""
    values = dict(trial.hyperparameters.values)
    epochs = values.get("tuner/epochs")
    values = {name: value for name, value in values.items() if not name.startswith("tuner/")}
    return values if epochs is None else {**values, "epochs": epochs}
