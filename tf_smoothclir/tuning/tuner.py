"""Trials of a search: each trains what ranks as smoothclir-train does, in its own run directory."""

import contextlib
import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import keras_tuner
import numpy as np
import tensorflow as tf
from absl import logging
from keras_tuner.engine.base_tuner import BaseTuner
from keras_tuner.engine.trial import TrialStatus
from tensorboard.plugins.hparams import api as hparams
from tensorflow import keras

from tf_smoothclir.data.folds import fold_sets
from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.plugins import family
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage.files import delete_in, read_record, write_json
from tf_smoothclir.training.run_data import retrieval_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet, learn_models
from tf_smoothclir.training.train import trainer_of
from tf_smoothclir.training.trainer import DivergedRun, validation_of
from tf_smoothclir.tuning.oracles import trial_values
from tf_smoothclir.tuning.search_directory import LOGS, TRIALS
from tf_smoothclir.tuning.search_space import with_values
from tf_smoothclir.utils.errors import InputError

_ALL_TRIALS = 1_000_000


def tokenized_sets(
    settings: RunSettings, folds: int, in_memory: MemorySource | None = None
) -> list[TokenizedSet]:
    """Loads and tokenizes the set, once for each fold; no vocabulary sees held-out queries."""
    source = source_of(settings.data, in_memory)
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
        """Mean validation metrics over the folds and total seconds; 0 for a trial that diverges."""
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
            name: float(np.mean([of_fold["validation"][name] for of_fold in trained]))
            for name in METRICS
        }
        with tf.summary.create_file_writer(str(logs)).as_default(step=0):
            hparams.hparams(values, trial_id=trial.trial_id)
            for name, value in metrics.items():
                tf.summary.scalar(f"trial/{name}", value)
        training = [of_fold["training"] for of_fold in trained]
        return {
            **metrics,
            "best_epoch": float(np.mean([of_fold["best_epoch"] for of_fold in training])),
            "seconds": sum(of_fold["seconds"] for of_fold in training),
            "diverged": float(any(of_fold["diverged"] for of_fold in trained)),
        }

    def _delete_models(self) -> None:
        trials = self.oracle.get_best_trials(_ALL_TRIALS)
        completed = [trial for trial in trials if trial.status == TrialStatus.COMPLETED]
        for trial in completed[1:]:
            delete_model(self._output_dir / TRIALS / trial.trial_id)


def train_trial(settings: RunSettings, tokenized_set: TokenizedSet, path: Path, logs: Path) -> dict:
    """Trains one model, or continues, or reads a finished one: its `metrics.json`."""
    try:
        run = RunDirectory.create(path, settings)
    except InputError:  # of a search whose state was deleted; or this raises too
        run = RunDirectory.create(path, settings, overwrite=True)
    if not run.finished:
        run.logs = logs
        with _quiet():
            result = _train(settings, tokenized_set, run)
        shutil.copytree(tokenized_set.vocabulary_dir, run.vocabulary, dirs_exist_ok=True)
        write_json(run.metrics, result)  # last: the trial is done
        keras.backend.clear_session()  # else the graphs of each trial stay in memory
        gc.collect()
    return read_record(run.metrics, dict, f"Delete {path}, and give the command again")


def _train(settings: RunSettings, tokenized_set: TokenizedSet, run: RunDirectory) -> dict:
    over, diverged = ModelsOverSet(settings, tokenized_set), False
    trainer, with_task = trainer_of(over, run), settings.retrieval.with_task
    try:
        trainer.train()
    except DivergedRun:
        diverged = True
    progress = trainer.progress
    best, seconds = dict.fromkeys(METRICS, 0.0), progress.seconds
    if {*settings.retrieval.families} != {with_task} and not diverged:
        over.add(with_task, trainer.task.model)
        learn_models(run, over)
        retriever = over.retrievers[settings.retrieval.ranks_with]
        best = validation_of(over.retrieval_set, settings.training.negatives)(retriever)
        seconds += over.run_models.seconds
    elif not diverged:
        best = progress.history[progress.best_epoch - 1]["validation"]
    return {
        "validation": best,
        "training": {
            "seconds": round(seconds, 3),
            "pairs": progress.pairs,
            "epochs": progress.epoch,
            "best_epoch": progress.best_epoch,
        },
        "diverged": diverged,
        "history": progress.history,
    }


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Logs no epochs of a trial, unless --verbosity=1."""
    before, library = logging.get_verbosity(), tf.get_logger()
    before_library = library.level
    if before == logging.INFO:
        logging.set_verbosity(logging.WARNING)
    library.setLevel("ERROR")  # it warns of retracing, which each trial needs
    try:
        yield
    finally:
        logging.set_verbosity(before)
        library.setLevel(before_library)


def delete_model(path: Path) -> None:
    """Deletes what a trial trained, and keeps its figures."""
    run = RunDirectory(path)
    if run.config.is_file():
        models = [family(name).path(run) for name in run.settings().retrieval.families]
        delete_in(path, [part.name for part in (run.vocabulary, *models)])
