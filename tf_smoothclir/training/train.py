"""A training run from settings to report: prepare, train, evaluate."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from absl import logging
from tensorflow import keras

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.plugins import DISTRIBUTIONS, family
from tf_smoothclir.settings.data import LANGUAGES
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import copy_file, read_record
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.evaluated_sets import warn_near_chance, warn_of_few_queries
from tf_smoothclir.training.initial_run import check_same_words, initial_run, keep_vocabularies
from tf_smoothclir.training.processes import SINGLE_PROCESS, SingleProcess
from tf_smoothclir.training.run_config import RunData
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import (
    ModelsOverSet,
    check_trained,
    learn_models,
    learn_what_needs_no_training,
)
from tf_smoothclir.training.run_report import evaluate_and_report, left_out
from tf_smoothclir.training.saved_states import keep_best
from tf_smoothclir.training.tasks import check_model, make_task
from tf_smoothclir.training.trainer import Look, Trainer
from tf_smoothclir.utils.errors import InputError, input_error


def train(
    settings: RunSettings,
    output_dir: str | Path,
    *,
    overwrite: bool = False,
    callbacks: Sequence[keras.callbacks.Callback] = (),
) -> dict | None:
    """Trains what ranks, evaluates it, and writes the run directory.

    An unfinished run with the same settings continues; a finished one is returned as it is. Where
    `--distribution` has several processes, each calls this before it uses TensorFlow for anything
    else.
    """

    def is_finished() -> bool:
        return RunDirectory(Path(output_dir)).finished and not overwrite

    if is_finished():
        run = RunDirectory.create(output_dir, settings)
        logging.info("The run in %s is finished; give --overwrite to train again", run.path)
        return read_record(run.metrics, dict, "Restore the file, or give --overwrite")
    choose_intraop_threads(settings)
    # Errors show before this process waits for others or writes anything.
    processes = DISTRIBUTIONS[settings.training.distribution](settings, is_finished)
    result = None
    with contextlib.ExitStack() as held:
        run, tokenized_set = _begin(settings, output_dir, overwrite, processes, held)
        with processes.noticing_lost_processes():
            over, progress = ModelsOverSet(run.settings(), tokenized_set), Progress()
            if over.settings.retrieval.with_task:
                over, progress = _trained(over, run, processes, callbacks)
            if processes.is_chief:
                models = learn_models(run, over)
                result = evaluate_and_report(run, models, over, progress)
                if tokenized_set.retrieval_set.source.is_judged:
                    warn_near_chance(result, settings)
                keep_best(run.checkpoints)
    processes.wait()  # to the others, a process that exits first would look lost
    return result


def _trained(
    over: ModelsOverSet,
    run: RunDirectory,
    processes: SingleProcess,
    callbacks: Sequence[keras.callbacks.Callback],
) -> tuple[ModelsOverSet, Progress]:
    """Trains what is trained step by step, unless validation shows that it counts for nothing.

    In that case the run keeps what ranks without it, and nothing of the training is left.
    """
    retrieval, look = over.settings.retrieval, None
    ranker = family(retrieval.retriever)
    if processes.size == 1:  # else the other processes would wait for the chief
        learn_what_needs_no_training(run, over)
        look = ranker.look(over)
    trainer = trainer_of(over, run, processes, callbacks, look)
    progress = trainer.train()
    if not processes.is_chief:
        return over, progress
    alone = trainer.ranks_alone
    if not alone:
        over.add(retrieval.with_task, trainer.task.model)
        learn_models(run, over)
        alone = ranker.ranks_alone(over)
    if not alone:
        return over, progress
    logging.info("%s", left_out(retrieval.with_task, alone))
    run.rank_by(alone)
    return over.by_part(run.settings()), Progress()


def _begin(
    settings: RunSettings,
    output_dir: str | Path,
    overwrite: bool,
    processes: SingleProcess,
    held: contextlib.ExitStack,
) -> tuple[RunDirectory, TokenizedSet | None]:
    """Creates the run directory, or finds the run to continue, and opens the set.

    The chief does this, and locks the directory until `held` is closed. Other processes get no set.
    """
    tokenized_set = None
    with processes.together():
        check_model(settings)
        if (initial := initial_run(settings)) is not None:
            check_trained(initial)
        if processes.is_chief:
            source = source_of(settings.data).training
            processes.check_set(source.name)
            held.enter_context(RunDirectory.only_one(output_dir))
            families = map(family, settings.retrieval.families)
            needs_pairs = any(one.needs_pairs(settings) for one in families)
            splits = SPLITS if needs_pairs else SPLITS[1:]
            load = functools.cache(lambda: retrieval_set_of(source, settings, splits))
            told = {name: getattr(source, name) for name in LANGUAGES}
            kept = dataclasses.replace(settings, data=dataclasses.replace(settings.data, **told))
            run = RunDirectory.create(output_dir, kept, overwrite=overwrite, check=load)
            try:
                tokenized_set = _prepared(load, settings, run, processes)
            except InputError:
                if not run.knows_data:
                    run.delete()
                raise
    with processes.together():
        if not processes.is_chief:
            run = RunDirectory.load(output_dir)
            run.check_joins(settings, processes.fingerprint)
    return run, tokenized_set


def _prepared(
    load: Callable[[], RetrievalSet],
    settings: RunSettings,
    run: RunDirectory,
    processes: SingleProcess,
) -> TokenizedSet:
    """Tokenises the set of a run, and records in the run which set it is."""
    if run.vocabulary.is_dir() and not run.knows_data:
        shutil.rmtree(run.vocabulary)  # its data had a defect, or may have changed since
    if (given := processes.vocabularies()) and not run.vocabulary.is_dir():
        with run.writing(run.vocabulary) as temporary:
            temporary.mkdir()
            for role, tokens in given.items():
                write_vocabulary(temporary / f"{role}.txt", tokens)
    if (initial := initial_run(settings)) is not None:
        if not run.vocabulary.is_dir():
            keep_vocabularies(initial, run)
        check_same_words(initial, run)
    source, tokenized_set = load().source, _tokenized(load(), settings, run)
    data = RunData(source.name, source.fingerprint(), processes.fingerprint)
    run.remember_data(data)  # not earlier: now the set is known to have no defect
    return tokenized_set


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


def retrieval_set_of(source: Source, settings: RunSettings, splits: Sequence[str]) -> RetrievalSet:
    """Loads a set and checks it."""
    if not source.is_judged:
        splits = [split for split in splits if split == "train"]
        if settings.retrieval.with_task or (splits and next(source.queries(), None) is None):
            raise input_error(
                source.name,
                "there are no judgments",
                "Add judgments, clicks or pairs; or teach the translation table alone, by"
                " --parallel=FILE or --dictionary=FILE, with --preset=lexical",
            )
    retrieval_set = RetrievalSet.load(
        source, num_grades=len(settings.model.thresholds) + 1, seed=settings.data.split_seed
    )
    if source.is_judged:
        splits = [split for split in splits if split in retrieval_set.judged_splits]
    for split in splits:
        retrieval_set.queries_in(split)
    if "test" in splits:
        warn_of_few_queries(retrieval_set, "test")
    return retrieval_set


def tokenized_set_of(
    source: Source, settings: RunSettings, run: RunDirectory, splits: Sequence[str]
) -> TokenizedSet:
    """Loads and tokenises a set with the vocabularies of the run; a new run counts its own."""
    return _tokenized(retrieval_set_of(source, settings, splits), settings, run)


def _tokenized(
    retrieval_set: RetrievalSet, settings: RunSettings, run: RunDirectory
) -> TokenizedSet:
    known = run.vocabulary if run.vocabulary.is_dir() else None
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir, known)
    if known is None:
        with run.writing(run.vocabulary) as temporary:
            temporary.mkdir()
            for role in ROLES:
                copy_file(tokenized_set.vocabulary_dir / f"{role}.txt", temporary / f"{role}.txt")
            families = map(family, settings.retrieval.families)
            more_words = [one.adds_words(temporary, settings) for one in families]
        if any(more_words):
            return _tokenized(retrieval_set, settings, run)
    return dataclasses.replace(tokenized_set, vocabulary_dir=run.vocabulary)
