"""Oracles of keras-tuner, and a grid, whose state survives a kill.

Each proposal is a function of the seed, the space and the finished trials, and the whole state is
one file, written atomically. So a killed search continues as if it had not been interrupted.
keras-tuner's own files disagree after a kill, and its grid cannot resume.
"""

import itertools
import time
import warnings
from pathlib import Path

import keras_tuner
import numpy as np
from absl import logging
from keras_tuner.engine.trial import Trial, TrialStatus

from tf_smoothclir.storage.files import read_json, write_json
from tf_smoothclir.tuning.search_space import combinations, count_combinations
from tf_smoothclir.utils.errors import input_error

_IDLE_SECONDS = 0.2
_MOST_COLLISIONS = 1000  # of random draws, before a space counts as exhausted


class DurableOracle(keras_tuner.Oracle):
    """Keeps all trials in one file, and honours `max_trials` exactly; stands before an oracle."""

    def __init__(
        self,
        space: keras_tuner.HyperParameters,
        path: Path,
        *,
        objective: str,
        max_trials: int,
        seed: int,
        **more,
    ):
        super().__init__(
            objective=keras_tuner.Objective(objective, "max"),
            hyperparameters=space,
            allow_new_entries=False,
            seed=seed + 1,  # for keras-tuner, 0 is no seed
            **more,
        )
        self.verbose = 0
        self.max_trials = None  # else the length of trial ids would depend on it
        self.trial_limit = max_trials
        self._max_collisions = _MOST_COLLISIONS
        self._path = path
        if path.is_file():
            self.reload()

    def save(self) -> None:
        """Writes the whole state to one file."""
        trials = [trial.get_state() for trial in self.trials.values()]
        write_json(self._path, {**self.get_state(), "trials": trials})

    def reload(self) -> None:
        """Reads the state; interrupted trials will be handed out first."""
        try:
            state = read_json(self._path)
            trials = [Trial.from_state(trial) for trial in state["trials"]]
            self.trials = {trial.trial_id: trial for trial in trials}
            self.set_state({**state, "ongoing_trials": {}})
        except (ValueError, KeyError, TypeError) as error:
            remedy = (
                "Delete it and give the same command again: trials are proposed in the same order,"
                " and finished ones are read from their own directories"
            )
            raise input_error(self._path, f"it is damaged ({error})", remedy) from error
        unfinished = [id_ for id_ in self.start_order if id_ not in self.end_order]
        self._retry_queue = unfinished[::-1]

    def _save_trial(self, trial) -> None:
        """Writes nothing: keras-tuner's file for each trial is replaced by `save`."""

    def end_trial(self, trial) -> None:
        """Records and logs the result."""
        super().end_trial(trial)
        trial, best = self.trials[trial.trial_id], self.get_best_trials(1)[0]
        logging.info(
            "Trial %s (%d of at most %d): %s: %s %.4f; best so far %.4f (trial %s)",
            trial.trial_id,
            len(self.end_order),
            self.trial_limit,
            " ".join(f"--{name}={value}" for name, value in trial_values(trial).items()),
            self.objective.name,
            trial.score,
            best.score,
            best.trial_id,
        )

    def populate_space(self, trial_id: str) -> dict:
        """The values of a new trial; see `keras_tuner.Oracle`."""
        if len(self.trials) >= self.trial_limit:
            return {"status": TrialStatus.STOPPED}
        proposal = self.propose(trial_id)
        if proposal["status"] == TrialStatus.IDLE:
            time.sleep(_IDLE_SECONDS)  # keras-tuner asks again at once
        return proposal

    def propose(self, trial_id: str) -> dict:
        """The "status" and, if that is "RUNNING", the "values" of a new trial."""
        return super().populate_space(trial_id)


class GridOracle(DurableOracle):
    """Tries every combination in order, as the paper does."""

    def propose(self, trial_id: str) -> dict:
        """Proposes the combination after the last one."""
        untried = itertools.islice(combinations(self.get_space()), len(self.trials), None)
        values = next(untried, None)
        status = TrialStatus.STOPPED if values is None else TrialStatus.RUNNING
        return {"status": status, "values": values}


class RandomOracle(DurableOracle, keras_tuner.oracles.RandomSearchOracle):
    """Tries random combinations, each once."""


class BayesianOracle(DurableOracle, keras_tuner.oracles.BayesianOptimizationOracle):
    """Tries some random combinations, then those that a Gaussian process favours, each once."""

    def propose(self, trial_id: str) -> dict:
        """Proposes what has the best confidence bound, or if that was tried, anything else."""
        self._random_state = np.random.RandomState(self.seed + len(self.trials))  # it is not saved
        with warnings.catch_warnings(action="ignore"):  # of few trials, no kernel is the best
            proposal = super().propose(trial_id)
        tried = [trial.hyperparameters.values for trial in self.trials.values()]
        return self._random_populate_space() if proposal.get("values") in tried else proposal


class HyperbandOracle(DurableOracle, keras_tuner.oracles.HyperbandOracle):
    """Hyperband (Li et al. 2018): many short trials, longer ones for the best."""

    def __init__(self, space: keras_tuner.HyperParameters, path: Path, *, max_epochs: int, **more):
        super().__init__(space, path, max_epochs=max_epochs, **more)
        needed = self._get_size(self._get_num_brackets() - 1, 0)
        if (possible := count_combinations(space, needed)) < needed:
            raise input_error(
                "--search=hyperband",
                f"with --epochs={max_epochs} it starts with {needed} different trials, but --tune"
                f" gives only {possible}",
                "Name more settings in --tune, lower --epochs, or use --search=grid",
            )


ORACLES = {
    "grid": GridOracle,
    "random": RandomOracle,
    "bayesian": BayesianOracle,
    "hyperband": HyperbandOracle,
}


def trial_values(trial) -> dict:
    """The settings of a trial, with Hyperband including its epochs."""
    values = dict(trial.hyperparameters.values)
    epochs = values.get("tuner/epochs")
    values = {name: value for name, value in values.items() if not name.startswith("tuner/")}
    return values if epochs is None else {**values, "epochs": epochs}
