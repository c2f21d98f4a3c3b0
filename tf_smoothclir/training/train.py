"""A training run from settings to report: prepare, train, evaluate."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.folds import check_folds, rotated_sets
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.evaluate import Evaluation, evaluate_split
from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.plugins import DISTRIBUTIONS, family
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import read_record
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.evaluated_sets import warn_near_chance
from tf_smoothclir.training.processes import SINGLE_PROCESS, SingleProcess
from tf_smoothclir.training.run_data import begin_run, tokenize_for_run
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import (
    ModelsOverSet,
    learn_models,
    learn_what_needs_no_training,
)
from tf_smoothclir.training.run_report import evaluate_and_report, left_out
from tf_smoothclir.training.saved_states import keep_best
from tf_smoothclir.training.tasks import make_task
from tf_smoothclir.training.trainer import Look, Trainer
from tf_smoothclir.utils.errors import input_error


def train(
    settings: RunSettings,
    output_dir: str | Path,
    *,
    overwrite: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    folds: int = 0,
) -> dict | None:
    """Trains what ranks, evaluates it, and writes the run directory.

    With folds, it is also measured by cross-validation over all judged queries.

    An unfinished run with the same settings continues; a finished one is returned as it is. Where
    `--distribution` has several processes, each calls this before it uses TensorFlow for anything
    else.
    """

    def is_finished() -> bool:
        return RunDirectory(Path(output_dir)).finished and not overwrite

    if is_finished():
        run, data = RunDirectory.create(output_dir, settings), settings.data
        if data != run.settings_asked_for().data:
            run.check_data(source_of(data).fingerprint())
        logging.info("The run in %s is finished; give --overwrite to train again", run.path)
        return read_record(run.metrics, dict, "Restore the file, or give --overwrite")
    choose_intraop_threads(settings)
    if folds and (settings.training.distribution != "none" or settings.training.init_from):
        reason = "one process trains them from the beginning"
        raise input_error(f"--folds={folds}", reason, "Leave --distribution and --init_from out")
    # Errors show before this process waits for others or writes anything.
    processes = DISTRIBUTIONS[settings.training.distribution](settings, is_finished)
    result = None
    with contextlib.ExitStack() as held:
        run, tokenized_set = begin_run(settings, output_dir, overwrite, processes, held)
        with processes.noticing_lost_processes():
            over, progress = ModelsOverSet(run.settings(), tokenized_set), Progress()
            if folds:
                check_folds(folds, len(np.unique(over.retrieval_set.query_rows)))
            if over.settings.retrieval.with_task:
                over, progress = _trained(over, run, processes, callbacks)
            if processes.is_chief:
                over, progress = _learned(over, run, progress)
                models = learn_models(run, over)
                crossed = _cross_validated(over.retrieval_set, settings, folds) if folds else None
                result = evaluate_and_report(run, models, over, progress, crossed)
                if tokenized_set.retrieval_set.source.is_judged:
                    warn_near_chance(result, settings)
                keep_best(run.checkpoints)
    processes.wait()  # to the others, a process that exits first would look lost
    return result


def _cross_validated(retrieval_set: RetrievalSet, settings: RunSettings, folds: int) -> Evaluation:
    """Measures each judged query by a model that was not trained on it; keeps no model."""
    parts = []
    for number, fold in enumerate(
        rotated_sets(retrieval_set, folds, settings.data.split_seed), start=1
    ):
        logging.info("Cross-validation: fold %d of %d", number, folds)
        with tempfile.TemporaryDirectory(prefix="smoothclir-fold-") as directory:
            run = RunDirectory.create(Path(directory, "run"), settings)
            over = ModelsOverSet(settings, tokenize_for_run(fold, settings, run))
            if settings.retrieval.with_task:
                over, _ = _trained(over, run, SINGLE_PROCESS, ())
            over, _ = _learned(over, run, Progress())
            retriever = over.retrievers[over.settings.retrieval.ranks_with]
            negatives = settings.training.negatives
            parts.append(evaluate_split(fold, retriever, "test", negatives=negatives))
    return Evaluation.joined(parts)


def _trained(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess,
    callbacks: Sequence[keras.callbacks.Callback],
) -> tuple[ModelsOverSet, Progress]:
    """Trains what is trained step by step, unless validation shows that it counts for nothing."""
    retrieval, look = over.settings.retrieval, None
    ranker = family(retrieval.retriever)
    if processes.size == 1:  # else the other processes would wait for the chief
        learn_what_needs_no_training(run, over)
        look = ranker.look(over)
    trainer = trainer_of(over, run, processes, callbacks, look)
    progress = trainer.train()
    if not processes.is_chief:
        return over, progress
    if trainer.ranks_alone:
        over, _, progress = _without(over, run, progress, trainer.ranks_alone)
    else:
        over.add(retrieval.with_task, trainer.task.model)
    return over, progress


def _learned(
    over: ModelsOverSet, run: RunDirectory, progress: Progress
) -> tuple[ModelsOverSet, Progress]:
    """Learns all other models, and leaves out those that count for nothing on validation."""
    learn_models(run, over)
    alone = family(over.settings.retrieval.retriever).ranks_alone(over)
    return _learned(*_without(over, run, progress, alone)) if alone else (over, progress)


def _without(
    over: ModelsOverSet, run: RunDirectory, progress: Progress, alone: str
) -> tuple[ModelsOverSet, RunDirectory, Progress]:
    """The run by what ranks alone; of a training that counted for nothing, nothing is left."""
    run.rank_by(alone)
    logging.info("%s", left_out(over.settings, run.settings()))
    over = over.by_part(run.settings())
    return over, run, progress if over.settings.retrieval.with_task else Progress()


def trainer_of(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess = SINGLE_PROCESS,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    look: Look | None = None,
) -> Trainer:
    """The trainer of a new run, or of a run that has a checkpoint."""
    settings, tokenized_set = over.settings, over.tokenized_set
    keras.utils.set_random_seed(settings.training.seed)
    training_set = tokenized_set  # None where another process is the chief
    if processes.is_chief:
        training_set = family(settings.retrieval.with_task).training_set(run, over)
    task = make_task(settings, tokenized_set, run, processes, training_set)
    retrieval_set = tokenized_set.retrieval_set if processes.is_chief else None
    return Trainer(task, retrieval_set, settings.training, run, processes, callbacks, look)
