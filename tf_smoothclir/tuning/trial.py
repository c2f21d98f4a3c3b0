"""One trial of a search: a run directory without a report."""

from __future__ import annotations

import contextlib
import gc
import shutil
from collections.abc import Iterator
from pathlib import Path

import tensorflow as tf
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.plugins import family
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.storage.files import delete_in, read_record, write_json
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet, learn_models
from tf_smoothclir.training.task_training import trainer_of
from tf_smoothclir.training.trainer import DivergedRun, Validation
from tf_smoothclir.utils.errors import InputError


def train_trial(settings: RunSettings, tokenized_set: TokenizedSet, path: Path, logs: Path) -> dict:
    """Trains one model, or continues its training; a finished trial is only read.

    Returns:
        The content of its `metrics.json`. `validation` has the metrics of what ranks, with towers
        of their best epoch; 0 if a loss, a gradient or a weight became infinite or NaN.
    """
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
    over, progress, diverged = ModelsOverSet(settings, tokenized_set), Progress(), False
    if with_task := settings.retrieval.with_task:
        trainer = trainer_of(over, run)
        try:
            trainer.train()
        except DivergedRun:
            diverged = True
        progress = trainer.progress
    best, seconds = dict.fromkeys(METRICS, 0.0), progress.seconds
    if {*settings.retrieval.families} != {with_task} and not diverged:
        if with_task:
            over.add(with_task, trainer.task.model)
        models = learn_models(run, over)
        retriever = over.retrievers[settings.retrieval.ranks_with]
        negatives = settings.training.negatives
        best, _ = Validation(lambda: retriever, tokenized_set.retrieval_set, negatives)()
        seconds += models.seconds
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
    """Deletes the models of a trial, if there is a run."""
    run = RunDirectory(path)
    if run.config.is_file():
        models = [family(name).path(run) for name in run.settings().retrieval.families]
        delete_in(path, [part.name for part in (run.vocabulary, *models)])
