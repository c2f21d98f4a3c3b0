"""The training of what is trained step by step, and whether it counts."""

from __future__ import annotations

from collections.abc import Sequence

from absl import logging
from tensorflow import keras

from tf_smoothclir.plugins import family
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.processes import SINGLE_PROCESS, SingleProcess
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import (
    ModelsOverSet,
    RunModels,
    learn_models,
    learn_what_needs_no_training,
)
from tf_smoothclir.training.run_report import left_out
from tf_smoothclir.training.tasks import make_task
from tf_smoothclir.training.trainer import Look, Trainer
from tf_smoothclir.utils.memory import give_back_memory


def trainer_of(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess = SINGLE_PROCESS,
    callbacks: Sequence[keras.callbacks.Callback] = (),
    look: Look | None = None,
) -> Trainer:
    """The trainer of a new run, or of a run that has a checkpoint."""
    settings, tokenized_set = over.settings, over.tokenized_set
    give_back_memory()  # of what was learned before
    keras.utils.set_random_seed(settings.training.seed)
    training_set = tokenized_set  # None where another process is the chief
    if processes.is_chief:
        training_set = family(settings.retrieval.with_task).training_set(run, over)
    task = make_task(settings, tokenized_set, run, processes, training_set)
    retrieval_set = tokenized_set.retrieval_set if processes.is_chief else None
    return Trainer(task, retrieval_set, settings.training, run, processes, callbacks, look)


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
    trainer = trainer_of(over, run, processes, callbacks, look)
    give_back_memory()  # of what built the model
    progress = trainer.train()
    if not processes.is_chief:
        return over, progress
    give_back_memory()  # before evaluation, which takes most
    if trainer.ranks_alone:
        over, _, progress = _without(over, run, progress, trainer.ranks_alone)
    else:
        over.add(retrieval.with_task, trainer.task.model)
    return over, progress


def learn_others(
    over: ModelsOverSet, run: RunDirectory, progress: Progress
) -> tuple[RunModels, ModelsOverSet, Progress]:
    """Learns all other models, and leaves out those that count for nothing on validation."""
    models = learn_models(run, over)
    alone = family(over.settings.retrieval.retriever).ranks_alone(over)
    return (
        learn_others(*_without(over, run, progress, alone)) if alone else (models, over, progress)
    )


def _without(
    over: ModelsOverSet, run: RunDirectory, progress: Progress, alone: str
) -> tuple[ModelsOverSet, RunDirectory, Progress]:
    """The run by what ranks alone; of a training that counted for nothing, nothing is left."""
    run.rank_by(alone)
    logging.info("%s", left_out(over.settings, run.settings()))
    over = over.by_part(run.settings())
    return over, run, progress if over.settings.retrieval.with_task else Progress()
