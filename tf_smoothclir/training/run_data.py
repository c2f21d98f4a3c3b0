"""The set of a run: loaded, checked, and tokenised with its vocabularies."""

import contextlib
import dataclasses
import functools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.data.sources.splits import read_digests
from tf_smoothclir.data.tokenized_set import TokenizedSet, copy_vocabularies
from tf_smoothclir.plugins import family
from tf_smoothclir.settings.data import LANGUAGES
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.text.vocabulary import write_vocabulary
from tf_smoothclir.training.evaluated_sets import log_known_queries, warn_of_few_queries
from tf_smoothclir.training.initial_run import (
    begin_with_words,
    check_begins_with_words,
    initial_run,
    log_queries_of,
)
from tf_smoothclir.training.processes import SingleProcess
from tf_smoothclir.training.run_config import RunData
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import check_trained
from tf_smoothclir.training.tasks import check_model
from tf_smoothclir.utils.errors import InputError, input_error


def begin_run(
    settings: RunSettings,
    output_dir: str | Path,
    overwrite: bool,
    processes: SingleProcess,
    held: contextlib.ExitStack,
    in_memory: MemorySource | None = None,
) -> tuple[RunDirectory, TokenizedSet | None]:
    """Creates the run directory, or finds the run to continue, and opens the set."""
    # The chief does this, and locks the directory until `held` is closed. Other processes
    # get no set.
    tokenized_set = None
    with processes.together():
        check_model(settings)
        if (initial := initial_run(settings)) is not None:
            check_trained(initial)
        if processes.is_chief:
            source = source_of(settings.data, in_memory).training
            processes.check_set(source.name)
            held.enter_context(RunDirectory.only_one(output_dir))
            families = map(family, settings.retrieval.families)
            needs_pairs = any(one.needs_pairs(settings) for one in families)
            splits = SPLITS if needs_pairs else SPLITS[1:]
            load = functools.cache(lambda: retrieval_set_of(source, settings, splits, initial))
            told = {name: getattr(source, name) for name in LANGUAGES}
            kept = dataclasses.replace(settings, data=dataclasses.replace(settings.data, **told))
            run = RunDirectory.create(output_dir, kept, overwrite=overwrite, check=load)
            try:
                if in_memory is not None:
                    in_memory.keep(run.data, overwrite=overwrite)
                tokenized_set = _prepared(load, settings, run, initial, processes)
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
    initial: RunDirectory | None,
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
    if initial is not None:
        if run.vocabulary.is_dir():
            check_begins_with_words(initial, run)
        log_queries_of(initial, load())
    source, tokenized_set = load().source, tokenize_for_run(load(), settings, run)
    with run.writing(run.trained_queries) as path, open_to_write(path) as file:
        write_array(file, load().trained_queries, "<u8")
    data = RunData(source.name, source.fingerprint(), processes.fingerprint)
    run.remember_data(data)  # not earlier: now the set is known to have no defect
    return tokenized_set


def retrieval_set_of(
    source: Source, settings: RunSettings, splits: Sequence[str], run: RunDirectory | None = None
) -> RetrievalSet:
    """Loads a set and checks it; what a run was trained on neither validates nor tests."""
    if not source.is_judged:
        splits = [split for split in splits if split == "train"]
        if settings.retrieval.with_task or (splits and next(source.queries(), None) is None):
            raise input_error(
                source.name,
                f"there are no judgments{source.unread}",
                "Add judgments, clicks or pairs; or teach the translation table alone, by"
                " --parallel=FILE or --dictionary=FILE, with --preset=lexical",
            )
    retrieval_set = RetrievalSet.load(
        source,
        num_grades=len(settings.model.thresholds) + 1,
        seed=settings.data.split_seed,
        trained_before=None if run is None else read_digests(run.trained_queries),
    )
    if source.is_judged:
        splits = [split for split in splits if split in retrieval_set.judged_splits]
    for split in splits:
        retrieval_set.queries_in(split)
    log_known_queries(retrieval_set)
    for split in splits:
        warn_of_few_queries(retrieval_set, split, is_measured=split == "test")
    return retrieval_set


def tokenized_set_of(
    source: Source, settings: RunSettings, run: RunDirectory, splits: Sequence[str]
) -> TokenizedSet:
    """Loads a set, and tokenises it for a run."""
    return tokenize_for_run(retrieval_set_of(source, settings, splits, run), settings, run)


def tokenize_for_run(
    retrieval_set: RetrievalSet, settings: RunSettings, run: RunDirectory
) -> TokenizedSet:
    """Tokenises a set with the vocabularies of the run; a new run counts its own."""
    known = run.vocabulary if run.vocabulary.is_dir() else None
    tokenized_set = tokenize_set(retrieval_set, settings.text, settings.data.cache_dir, known)
    if known is None:
        with run.writing(run.vocabulary) as temporary:
            copy_vocabularies(tokenized_set.vocabulary_dir, temporary)
            families = map(family, settings.retrieval.families)
            more_words = [one.adds_words(temporary, settings) for one in families]
            if (initial := initial_run(settings)) is not None:
                begin_with_words(initial, temporary)
                more_words.append(True)
        if any(more_words):
            return tokenize_for_run(retrieval_set, settings, run)
    return dataclasses.replace(tokenized_set, vocabulary_dir=run.vocabulary)
