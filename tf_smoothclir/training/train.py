"""A training run from settings to report: prepare, train, evaluate."""

import contextlib
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from absl import logging
from tensorflow import keras

from tf_smoothclir._compat.quiet import without_retracing_warnings
from tf_smoothclir.data.folds import rotated_sets
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.evaluate import Evaluation, evaluate_split
from tf_smoothclir.evaluation.trec import join_files
from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.plugins import DISTRIBUTIONS, family
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import CROSS_VALIDATION
from tf_smoothclir.storage.files import read_record
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.evaluated_sets import folds_of_small_set, warn_near_chance
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
from tf_smoothclir.training.tasks import ObjectiveInputs, make_task, objective_inputs
from tf_smoothclir.training.trainer import Look, Trainer
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.memory import give_back_memory, reuse_freed_memory, share_freed_memory


def trainer_of(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess = SINGLE_PROCESS,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    look: Look | None = None,
    inputs: ObjectiveInputs | None = None,
) -> Trainer:
    """The trainer of a new run, or of a run that has a checkpoint."""
    task = make_task(inputs or objective_inputs(over, run, processes))
    retrieval_set = over.retrieval_set if processes.is_chief else None
    return Trainer(task, retrieval_set, over.settings.training, run, processes, callbacks, look)


def train_task(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess = SINGLE_PROCESS,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> tuple[ModelsOverSet, Progress]:
    """Trains what is trained step by step, unless validation shows that it counts for nothing."""
    retrieval, look = over.settings.retrieval, None
    ranker = family(retrieval.retriever)
    if processes.size == 1:  # else the other processes would wait for the chief
        learn_what_needs_no_training(run, over)
        look = ranker.look(over)
    model, progress, alone = _trained(over, run, processes, callbacks, look)
    give_back_memory()  # before evaluation, which takes most
    if alone:
        over, progress = _without(over, run, progress, alone)
    elif processes.is_chief:
        over.add(retrieval.with_task, model)
    return over, progress


def _trained(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess,
    callbacks: Sequence[keras.callbacks.Callback],
    look: Look | None,
) -> tuple[Any, Progress, str]:
    """What was trained, how far, and the part that ranks alone without it, or ""."""
    inputs, with_task = objective_inputs(over, run, processes), over.settings.retrieval.with_task
    if look and not run.begun:
        retrievers_of = family(with_task).retrievers
        if alone := look(lambda: retrievers_of(inputs.model, over)[with_task], True):
            return None, Progress(), alone
    trainer = trainer_of(over, run, processes, callbacks, look, inputs)
    progress = trainer.train()
    return trainer.task.model, progress, trainer.ranks_alone


def learn_others(
    over: ModelsOverSet, run: RunDirectory, progress: Progress
) -> tuple[ModelsOverSet, Progress]:
    """Learns all other models, and leaves out those that count for nothing on validation."""
    learn_models(run, over)
    while alone := family(over.settings.retrieval.retriever).ranks_alone(over):
        over, progress = _without(over, run, progress, alone)
        learn_models(run, over)
    return over, progress


def _without(
    over: ModelsOverSet, run: RunDirectory, progress: Progress, alone: str
) -> tuple[ModelsOverSet, Progress]:
    """The run by what ranks alone; of a training that counted for nothing, nothing is left."""
    run.rank_by(alone)
    logging.info("%s", left_out(over.settings, run.settings()))
    over = over.by_part(run.settings())
    return over, progress if over.settings.retrieval.with_task else Progress()


@without_retracing_warnings()  # small sets and folds have graphs of their own
def train(
    settings: RunSettings,
    output_dir: str | Path,
    *,
    overwrite: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    folds: int | None = 0,
    in_memory: MemorySource | None = None,
) -> dict | None:
    """Trains what ranks, evaluates it, and writes the run directory.

    A set in memory is written into the run, at `settings.data.data_dir`.

    With folds, it is also measured by cross-validation over all judged queries; None is for small
    sets alone.

    An unfinished run with the same settings continues; a finished one is returned as it is. Where
    `--distribution` has several processes, each calls this before it uses TensorFlow for anything
    else.
    """

    def is_finished() -> bool:
        return RunDirectory(Path(output_dir)).finished and not overwrite

    if is_finished():
        run = RunDirectory.create(output_dir, settings)
        run.check_data(source_of(settings.data, in_memory).training.fingerprint())
        logging.info("The run in %s is finished; give --overwrite to train again", run.path)
        return read_record(run.metrics, dict, "Restore the file, or give --overwrite")
    choose_intraop_threads(settings)
    reuse_freed_memory()
    share_freed_memory()
    if folds and (settings.training.distribution != "none" or settings.training.init_from):
        reason = "one process trains them from the beginning"
        raise input_error(f"--folds={folds}", reason, "Leave --distribution and --init_from out")
    # Errors show before this process waits for others or writes anything.
    processes = DISTRIBUTIONS[settings.training.distribution](settings, is_finished)
    result = None
    with contextlib.ExitStack() as held:
        run, tokenized_set = begin_run(settings, output_dir, overwrite, processes, held, in_memory)
        with processes.noticing_lost_processes():
            over, progress = ModelsOverSet(run.settings(), tokenized_set), Progress()
            if folds is None and processes.size == 1:  # else others would wait for the chief
                folds = folds_of_small_set(over.retrieval_set, settings)
            seed = settings.data.split_seed
            rotated = rotated_sets(over.retrieval_set, folds, seed) if folds else []
            if over.settings.retrieval.with_task:
                over, progress = train_task(over, run, processes, callbacks)
            if processes.is_chief:
                over, progress = learn_others(over, run, progress)
                crossed = _cross_validated(rotated, run) if folds else None
                result = evaluate_and_report(run, over, progress, crossed)
                if tokenized_set.retrieval_set.source.is_judged:
                    warn_near_chance(result, settings)
                keep_best(run.checkpoints)
    processes.wait()  # to the others, a process that exits first would look lost
    return result


def _cross_validated(folds: Sequence[RetrievalSet], run: RunDirectory) -> Evaluation:
    """Measures each judged query by a model that was not trained on it; keeps no model."""
    # By the settings of the finished run: towers that count for nothing are not trained again.
    with tempfile.TemporaryDirectory(prefix="smoothclir-folds-") as directory:
        files = [Path(directory, f"{i}") for i in range(1, len(folds) + 1)]
        parts = []
        for i, fold in enumerate(folds):
            logging.info("Cross-validation: fold %d of %d", i + 1, len(folds))
            parts.append(_measured_fold(fold, run.settings(), files[i]))
        join_files(files, run.evaluation / CROSS_VALIDATION)
    return Evaluation.joined(parts)


def _measured_fold(fold: RetrievalSet, settings: RunSettings, files: Path) -> Evaluation:
    """Trains on a fold and measures its test queries; keeps the files of these alone."""
    with tempfile.TemporaryDirectory(prefix="smoothclir-fold-") as directory:
        run = RunDirectory.create(Path(directory, "run"), settings)
        over = ModelsOverSet(settings, tokenize_for_run(fold, settings, run))
        if settings.retrieval.with_task:
            over, _ = train_task(over, run)
        over, _ = learn_others(over, run, Progress())
        retriever = over.retrievers[over.settings.retrieval.ranks_with]
        negatives = settings.training.negatives
        return evaluate_split(fold, retriever, "test", negatives=negatives, trec_dir=files)
