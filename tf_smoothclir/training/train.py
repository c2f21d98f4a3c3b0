"""A training run from settings to report: prepare, train, evaluate."""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

from absl import logging
from tensorflow import keras

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.shards.reading import Shards
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.ops.intraop_threads import choose_intraop_threads
from tf_smoothclir.settings.combinations import check_combinations
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training.checkpoints import Checkpoints, state_of
from tf_smoothclir.training.distributed.connect import connect
from tf_smoothclir.training.distributed.shard_batches import check_set, check_workers, open_shards
from tf_smoothclir.training.distributed.workers import ALONE, Alone
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_report import evaluate_and_report
from tf_smoothclir.training.trainer import Trainer
from tf_smoothclir.two_tower.builder import (
    build_model,
    configured_loss,
    load_pretrained,
    start_bilingual,
    start_token_weights,
)
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import SetEncoder, grade_rule, thresholds_of
from tf_smoothclir.utils.errors import InputError, input_error
from tf_smoothclir.utils.files import new_directory, read_json


def train(settings: RunSettings, output_dir: str | Path, *, overwrite: bool = False) -> dict | None:
    """Trains a model, evaluates it, and writes the run directory.

    Given again for an unfinished run, it continues; for a finished one, it returns its figures.
    With another `--distribution` than none, the processes that TF_CONFIG names call it together,
    each before it has done anything else with TensorFlow.

    Args:
        settings: All settings.
        output_dir: The run directory, which several workers share.
        overwrite: Deletes the run that is there.

    Returns:
        The content of `metrics.json`; None to others than the chief of a run that was not finished.

    Raises:
        InputError: The data, the settings or the directory cannot be used, or another process
            trains there.
        WorkerLost: Another worker was lost; a new process with the same arguments, but without
            `overwrite`, joins the others again.
    """

    check_combinations(settings)

    def is_finished() -> bool:
        return RunDirectory(Path(output_dir)).finished and not overwrite

    if is_finished():
        run = RunDirectory.create(output_dir, settings)
        logging.info("The run in %s is finished; give --overwrite to do it again", run.path)
        return read_json(run.metrics)
    choose_intraop_threads(settings)
    # What is wrong with these shows before others are waited for, or anything is written.
    shards = open_shards(settings)
    workers = connect(settings.training, is_finished)
    result = None
    with contextlib.ExitStack() as held:
        run, tokenized_set = _begin(settings, shards, output_dir, overwrite, workers, held)
        with workers.noticing_losses():
            trainer = trainer_of(settings, tokenized_set, run, shards, workers)
            progress = trainer.train()
            if workers.is_chief:
                model = trainer.model
                result = evaluate_and_report(
                    settings,
                    run,
                    SetEncoder(model, tokenized_set)(),
                    tokenized_set,
                    progress,
                    thresholds=thresholds_of(settings, model),
                    predict_grade=grade_rule(model),
                )
    workers.wait()  # one that is gone would look like one that was lost
    return result


def _begin(
    settings: RunSettings,
    shards: Shards | None,
    output_dir: str | Path,
    overwrite: bool,
    workers: Alone,
    held: contextlib.ExitStack,
) -> tuple[RunDirectory, TokenizedSet | None]:
    """Makes the run directory, or finds the run that is to be continued, and opens the set.

    The chief does so, and holds the directory's lock until `held` is closed; others have no set.
    """
    tokenized_set = None
    with workers.together():
        configured_loss(settings)
        if workers.is_chief:
            source = source_of(settings.data)
            if shards:
                check_set(shards, source.name)
                check_workers(shards, workers.size)
            held.enter_context(RunDirectory.only_one(output_dir))
            run = RunDirectory.create(output_dir, settings, overwrite=overwrite)
            tokenized_set = _prepared(source, settings, run, shards, workers.size)
    with workers.together():
        if not workers.is_chief:
            run = RunDirectory.load(output_dir)
            run.check_joins(settings, shards.fingerprint())
    return run, tokenized_set


def _prepared(
    source: Source,
    settings: RunSettings,
    run: RunDirectory,
    shards: Shards | None,
    num_workers: int,
) -> TokenizedSet:
    """Loads and tokenises the set of a run, and notes in the run which it is."""
    if run.vocabulary.is_dir() and not run.knows_data:
        shutil.rmtree(run.vocabulary)  # of data that had a defect, or may have changed since
    if shards and not run.vocabulary.is_dir():
        _keep_vocabularies(shards, run)
    tokenized_set = tokenized_set_of(source, settings, run, SPLITS)
    run.remember_data(  # now that the set is known to have no defect
        source.name, source.fingerprint(), shards.fingerprint() if shards else None, num_workers
    )
    return tokenized_set


def trainer_of(
    settings: RunSettings,
    tokenized_set: TokenizedSet | None,
    run: RunDirectory,
    shards: Shards | None = None,
    workers: Alone = ALONE,
) -> Trainer:
    """Returns the trainer of a new model, or of the one whose checkpoint is in `run`.

    Args:
        settings: All settings.
        tokenized_set: The set; only the chief of several workers needs it.
        run: The run directory.
        shards: Where given, what training reads instead of the set.
        workers: Who trains together.
    """
    keras.utils.set_random_seed(settings.training.seed)
    vocabularies = {role: (shards or tokenized_set).vocabulary(role) for role in ROLES}
    model = build_model(settings, vocabularies)
    if workers.is_chief and not run.begun:
        load_pretrained(model, settings, vocabularies)
        start_bilingual(model, settings, tokenized_set)
        start_token_weights(model, settings, tokenized_set)
    return Trainer(model, tokenized_set, settings.training, run, shards, workers)


def retrieval_set_of(source: Source, settings: RunSettings, splits: Sequence[str]) -> RetrievalSet:
    """Loads a set and checks it.

    Raises:
        InputError: The set has a defect, or one of the `splits` has no judged query.
    """
    retrieval_set = RetrievalSet.load(
        source, num_grades=len(settings.model.thresholds) + 1, seed=settings.data.split_seed
    )
    for split in splits:
        retrieval_set.queries_in(split)
    return retrieval_set


def tokenized_set_of(
    source: Source, settings: RunSettings, run: RunDirectory, splits: Sequence[str]
) -> TokenizedSet:
    """Loads and tokenises a set by the vocabularies of the run, which are counted if new.

    Raises:
        InputError: The set has a defect, or one of the `splits` has no judged query.
    """
    retrieval_set = retrieval_set_of(source, settings, splits)
    known = run.vocabulary if run.vocabulary.is_dir() else None
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir, known)
    if known is None:
        with new_directory(run.vocabulary) as temporary:
            for role in ROLES:
                shutil.copy(tokenized_set.vocabulary_dir / f"{role}.txt", temporary)
    return dataclasses.replace(tokenized_set, vocabulary_dir=run.vocabulary)


def _keep_vocabularies(shards: Shards, run: RunDirectory) -> None:
    """Makes the vocabularies of shards, by which their ids were looked up, those of the run."""
    with new_directory(run.vocabulary) as temporary:
        for role in ROLES:
            write_vocabulary(temporary / f"{role}.txt", shards.vocabulary(role))


def load_model(run: RunDirectory) -> TwoTower:
    """Restores the model of a run with the weights of its best epoch.

    Raises:
        InputError: The run has not completed an epoch.
    """
    settings = run.settings()
    if not run.vocabulary.is_dir():
        raise _no_weights(run)
    model = build_model(settings, {role: run.vocabulary_tokens(role) for role in ROLES})
    checkpoints = Checkpoints(run.checkpoints, state_of(model))
    if not checkpoints.has_best:
        raise _no_weights(run)
    checkpoints.restore_best()
    return model


def _no_weights(run: RunDirectory) -> InputError:
    return input_error(
        f"--run_dir={run.path}",
        "the run has not completed an epoch yet",
        f"Continue it: smoothclir-train --flagfile={run.flags} --output_dir={run.path}",
    )
