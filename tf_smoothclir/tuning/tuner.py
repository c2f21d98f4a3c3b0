"""Trials: each trains a model with the house's own trainer, in a run directory of its own."""

from __future__ import annotations

import contextlib
import gc
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import grpc
import keras_tuner
import numpy as np
import tensorflow as tf
from absl import logging
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import TrialStatus
from tensorboard.plugins.hparams import api as hparams
from tensorflow import keras

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import TokenizedSet, tokenize_set
from tf_smoothclir.settings.run import METRICS, RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import retrieval_set_of, trainer_of
from tf_smoothclir.training.trainer import DivergedRun
from tf_smoothclir.tuning.cross_validation import fold_sets
from tf_smoothclir.tuning.oracles import trial_values
from tf_smoothclir.tuning.search_space import with_values
from tf_smoothclir.utils.errors import InputError
from tf_smoothclir.utils.files import read_json, write_json

TRIALS, LOGS = "trials", "logs"
_MANY = 1_000_000
_IDLE_SECONDS = 0.5


def tokenized_sets(settings: RunSettings, folds: int) -> list[TokenizedSet]:
    """Loads and tokenises the set, once for each fold, whose vocabulary knows no held-out query.

    Raises:
        InputError: The set has a defect, or too few queries.
    """
    source = source_of(settings.data)
    retrieval_set = retrieval_set_of(source, settings, ("train", "validation"))
    sets = fold_sets(retrieval_set, folds, settings.data.split_seed)
    return [tokenize_set(fold, settings.text, settings.data.cache_dir) for fold in sets]


class TrialTuner(BaseTuner):
    """Runs the trials that an oracle proposes, here or at a chief (keras-tuner's environment)."""

    def __init__(
        self,
        oracle: keras_tuner.Oracle,
        settings: RunSettings,
        sets: list[TokenizedSet],
        output_dir: Path,
        *,
        heartbeat_seconds: float = 10.0,
    ):
        """Joins an oracle to what its trials train.

        Args:
            oracle: Proposes; a worker needs it for its objective only.
            settings: The fixed part. Its `select_metric` is the objective.
            sets: From `tokenized_sets`.
            output_dir: Gets `trials/` and `logs/`.
            heartbeat_seconds: How often a worker says that it is alive.
        """
        super().__init__(oracle, directory=str(output_dir), project_name=TRIALS)
        self._settings = settings
        self._sets = sets
        self._output_dir = output_dir
        self._heartbeat_seconds = heartbeat_seconds
        self._idle = False

    @property
    def project_dir(self) -> str:
        """The directory of the trials. keras-tuner's makes it, perhaps before the chief is here."""
        return str(Path(self.directory) / self.project_name)

    def save(self) -> None:
        """Does nothing: the oracle saves itself, and there is no other state."""

    def pre_create_trial(self) -> None:
        """Waits a little where the oracle had no trial the last time."""
        if self._idle:
            time.sleep(_IDLE_SECONDS)
        self._idle = True

    def on_trial_begin(self, trial) -> None:
        """Notes that there is something to do."""
        self._idle = False

    def run_trial(self, trial) -> dict[str, float]:
        """Trains on each fold and returns the mean validation metrics; seconds are summed.

        A trial that diverges is worth 0. Any other error ends the search.
        """
        with self._heartbeat(trial.trial_id):
            try:
                return self._run_trial(trial)
            except Exception as error:  # keras-tuner would count it as a bad trial and go on
                raise keras_tuner.errors.FatalError(str(error)) from error

    def on_trial_end(self, trial) -> None:
        """Reports the result and deletes the models that are not the best."""
        super().on_trial_end(trial)
        self._delete_models()

    def on_search_end(self) -> None:
        """Deletes what a kill may have left."""
        self._delete_models()

    def _run_trial(self, trial) -> dict[str, float]:
        values = trial_values(trial)
        settings = with_values(self._settings, values)
        path, logs = (self._output_dir / part / trial.trial_id for part in (TRIALS, LOGS))
        if len(self._sets) == 1:
            results = [train_trial(settings, self._sets[0], path, logs)]
        else:
            results = []
            for fold, tokenized_set in enumerate(self._sets, start=1):
                name = f"fold{fold}"
                results.append(train_trial(settings, tokenized_set, path / name, logs / name))
                _delete_model(path / name)  # of no use: it has not seen all training queries
        metrics = {
            name: float(np.mean([result["validation"][name] for result in results]))
            for name in METRICS
        }
        with tf.summary.create_file_writer(str(logs)).as_default(step=0):
            hparams.hparams(values, trial_id=trial.trial_id)
            for name, value in metrics.items():
                tf.summary.scalar(f"trial/{name}", value)
        return {
            **metrics,
            "best_epoch": float(np.mean([result["training"]["best_epoch"] for result in results])),
            "seconds": sum(result["training"]["seconds"] for result in results),
            "diverged": float(any(result["diverged"] for result in results)),
        }

    def _delete_models(self) -> None:
        trials = self.oracle.get_best_trials(_MANY)
        completed = [trial for trial in trials if trial.status == TrialStatus.COMPLETED]
        for trial in completed[1:]:
            _delete_model(self._output_dir / TRIALS / trial.trial_id)

    @contextlib.contextmanager
    def _heartbeat(self, trial_id: str) -> Iterator[None]:
        """Asks the chief for the trial from time to time, which it takes as a sign of life."""
        if not self._is_worker():
            yield
            return
        done = threading.Event()

        def beat():
            with contextlib.suppress(grpc.RpcError):  # the chief is gone, as will be noticed
                while not done.wait(self._heartbeat_seconds):
                    self.oracle.get_trial(trial_id)

        threading.Thread(target=beat, daemon=True).start()
        try:
            yield
        finally:
            done.set()


def train_trial(settings: RunSettings, tokenized_set: TokenizedSet, path: Path, logs: Path) -> dict:
    """Trains one model, or goes on with it, or returns what it came to.

    Args:
        settings: All settings of the trial.
        tokenized_set: The set.
        path: The run directory of the trial.
        logs: For TensorBoard.

    Returns:
        The content of its `metrics.json`: validation figures of the best epoch, history, whether
        it diverged.
    """
    try:
        run = RunDirectory.create(path, settings)
    except InputError:  # left by a search whose file was damaged; or it raises again
        run = RunDirectory.create(path, settings, overwrite=True)
    if not run.finished:
        run.logs = logs
        with _quiet():
            result = _train(settings, tokenized_set, run)
        shutil.copytree(tokenized_set.vocabulary_dir, run.vocabulary, dirs_exist_ok=True)
        write_json(run.metrics, result)  # last: the trial is done
        keras.backend.clear_session()  # else each trial leaves its graphs in memory
        gc.collect()
    return read_json(run.metrics)


def _train(settings: RunSettings, tokenized_set: TokenizedSet, run: RunDirectory) -> dict:
    trainer = trainer_of(settings, tokenized_set, run)
    diverged = False
    try:
        trainer.train()
    except DivergedRun:
        diverged = True
    progress = trainer.progress
    best = dict.fromkeys(METRICS, 0.0)
    if not diverged:
        best = progress.history[progress.best_epoch - 1]["validation"]
    return {
        "validation": best,
        "training": {
            "seconds": round(progress.seconds, 3),
            "pairs": progress.pairs,
            "epochs": progress.epoch,
            "best_epoch": progress.best_epoch,
        },
        "diverged": diverged,
        "history": progress.history,
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Leaves out the epochs of each trial, but with --verbosity=1."""
    before, library = logging.get_verbosity(), tf.get_logger()
    before_library = library.level
    if before == logging.INFO:
        logging.set_verbosity(logging.WARNING)
    library.setLevel("ERROR")  # it warns of new graphs, which each trial needs
    try:
        yield
    finally:
        logging.set_verbosity(before)
        library.setLevel(before_library)


def _delete_model(path: Path) -> None:
    run = RunDirectory(path)
    for part in (run.checkpoints, run.vocabulary):
        shutil.rmtree(part, ignore_errors=True)
