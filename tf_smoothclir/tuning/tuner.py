"""Trials of a search: each trains what ranks as smoothclir-train does, in its own run directory."""

from __future__ import annotations

from pathlib import Path

import keras_tuner
import numpy as np
import tensorflow as tf
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import TrialStatus
from tensorboard.plugins.hparams import api as hparams

from tf_smoothclir.data.folds import fold_sets
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.training.run_data import retrieval_set_of
from tf_smoothclir.tuning.oracles import trial_values
from tf_smoothclir.tuning.search_directory import LOGS, TRIALS
from tf_smoothclir.tuning.search_space import with_values
from tf_smoothclir.tuning.trial import delete_model, train_trial

_ALL_TRIALS = 1_000_000


def tokenized_sets(settings: RunSettings, folds: int) -> list[TokenizedSet]:
    """Loads and tokenizes the set, once for each fold; no vocabulary sees held-out queries."""
    source = source_of(settings.data)
    retrieval_set = retrieval_set_of(source, settings, ("train", "validation"))
    sets = fold_sets(retrieval_set, folds, settings.data.split_seed)
    return [tokenize_set(fold, settings.text, settings.data.cache_dir) for fold in sets]


class TrialTuner(BaseTuner):
    """Runs the trials that an oracle proposes, or in keras-tuner's environment a remote chief."""

    def __init__(
        self,
        oracle: keras_tuner.Oracle,
        settings: RunSettings,
        sets: list[TokenizedSet],
        output_dir: Path,
    ):
        super().__init__(oracle, directory=str(output_dir), project_name=TRIALS)
        self._settings = settings
        self._sets = sets
        self._output_dir = output_dir

    def save(self) -> None:
        """Does nothing: the oracle saves itself, and a tuner has no other state."""

    def run_trial(self, trial) -> dict[str, float]:
        """Trains on each fold; returns the mean validation metrics and the total seconds.

        A trial that diverges has metrics of 0. Any other error ends the search.
        """
        try:
            return self._run_trial(trial)
        except Exception as error:  # else keras-tuner counts it as a bad trial
            raise keras_tuner.errors.FatalError(str(error)) from error

    def on_trial_end(self, trial) -> None:
        """Reports the result and deletes all models but the best."""
        super().on_trial_end(trial)
        self._delete_models()

    def on_search_end(self) -> None:
        """Deletes models that a killed process may have left."""
        self._delete_models()

    def _run_trial(self, trial) -> dict[str, float]:
        values = trial_values(trial)
        settings = with_values(self._settings, values)
        path, logs = (self._output_dir / part / trial.trial_id for part in (TRIALS, LOGS))
        trained = []
        for fold, tokenized_set in enumerate(self._sets, start=1):
            part = f"fold{fold}" if len(self._sets) > 1 else ""
            trained.append(train_trial(settings, tokenized_set, path / part, logs / part))
            if part:
                delete_model(path / part)  # it has not seen all training queries
        metrics = {
            name: float(np.mean([one["validation"][name] for one in trained])) for name in METRICS
        }
        with tf.summary.create_file_writer(str(logs)).as_default(step=0):
            hparams.hparams(values, trial_id=trial.trial_id)
            for name, value in metrics.items():
                tf.summary.scalar(f"trial/{name}", value)
        training = [one["training"] for one in trained]
        return {
            **metrics,
            "best_epoch": float(np.mean([one["best_epoch"] for one in training])),
            "seconds": sum(one["seconds"] for one in training),
            "diverged": float(any(one["diverged"] for one in trained)),
        }

    def _delete_models(self) -> None:
        trials = self.oracle.get_best_trials(_ALL_TRIALS)
        completed = [trial for trial in trials if trial.status == TrialStatus.COMPLETED]
        for trial in completed[1:]:
            delete_model(self._output_dir / TRIALS / trial.trial_id)
