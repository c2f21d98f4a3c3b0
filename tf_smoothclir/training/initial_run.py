"""Fine-tuning: a run that begins with the models of another one (`--init_from`).

Weights belong to words, so the vocabularies of the new run begin with those of the other one; the
words that only the new data have follow. Its towers begin with the weights of the other's best
epoch, and its translation table is that of the other with what the new pairs say.
"""

import dataclasses
from pathlib import Path

from absl import logging

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.sources.splits import known_queries
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.plugins import DISTRIBUTIONS, with_parts
from tf_smoothclir.settings.data import LANGUAGES, DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import NOT_BESIDE_INIT_FROM
from tf_smoothclir.text.vocabulary import read_vocabulary, write_vocabulary
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error

_FLAG = "--init_from"
# They decide which weights there are, in which order.
_FORM = (
    "shared_vocabulary",
    "ngram_buckets",
    "ngram_rows_per_word",
    "min_ngram",
    "max_ngram",
    "tower",
    "published_towers",
    "token_weights",
    "position_weights",
    "dim",
    "train_query_embeddings",
    "train_document_embeddings",
)


def settings_to_begin_with(path: str) -> RunSettings:
    """The settings of a run that begins with the run in `path`: its own, on other data."""
    there = _settings_of(RunDirectory.load(path, _FLAG))
    kept = {name: getattr(there.data, name) for name in (*LANGUAGES, "cache_dir")}
    data = DataSettings(**kept).of_another_set()
    distribution = DISTRIBUTIONS.plugin(there.training.distribution).settings
    others = tuple(group for group in there.of_plugins if type(group) is not distribution)
    defaults = RunSettings().values()
    of_its_start = {name: defaults[name] for name in ("init_from", *NOT_BESIDE_INIT_FROM)}
    return changed(dataclasses.replace(there, data=data, of_plugins=others), of_its_start)


def _settings_of(run: RunDirectory) -> RunSettings:
    """The settings of a run, whose tables of n-grams stay as large where words are added."""
    settings = run.settings()
    if not settings.text.ngram_rows_per_word or not run.vocabulary.is_dir():
        return settings
    rows = {settings.text.ngram_rows(len(run.vocabulary_tokens(role))) for role in ROLES}
    if len(rows) > 1:
        raise input_error(
            f"{_FLAG}={run.path}",
            "its tables of n-grams are of different sizes, which new words would change",
            "Begin with a run that has --shared_vocabulary or --ngram_rows_per_word=0",
        )
    return changed(settings, {"ngram_buckets": rows.pop(), "ngram_rows_per_word": 0})


def initial_run(settings: RunSettings) -> RunDirectory | None:
    """The run that a run with these settings begins with; None for none."""
    path = settings.training.init_from
    if not path:
        return None
    run = RunDirectory.load(path, _FLAG)
    there, here = _settings_of(run).values(), settings.values()
    for name in _FORM if settings.retrieval.with_task else _FORM[:1]:
        if there[name] != here[name]:
            raise input_error(
                f"{_FLAG}={path}",
                f"its models have another form: --{name} is {there[name]} there, {here[name]} here",
                f"Leave --{name} out",
            )
    if settings.retrieval.retriever not in with_parts(there["retriever"]):
        raise input_error(
            f"{_FLAG}={path}",
            f"it has no {settings.retrieval.retriever} models, but {there['retriever']} ones",
            "Leave --retriever out, or begin with a hybrid",
        )
    return run


def log_queries_of(initial: RunDirectory, retrieval_set: RetrievalSet) -> None:
    """Logs how many training queries the initial run was trained on; warns if it does not say."""
    trained = retrieval_set.trained_before
    if trained is None:
        logging.warning(
            f"{_FLAG}={initial.path}: an earlier version made this run, which does not say what it"
            " was trained on. Figures over queries that it knows are too good, and nothing counts"
            " them. Train it again to be sure."
        )
        return
    digests = retrieval_set.digests[retrieval_set.splits == SPLITS.index("train")]
    known, _ = known_queries(trained, digests)
    logging.info(f"{known} training queries are known from {_FLAG}")


def begin_with_words(initial: RunDirectory, vocabulary_dir: Path) -> None:
    """Puts the words of the initial run before those of new vocabularies that it lacks."""
    for role in ROLES:
        former, path = initial.vocabulary_tokens(role), vocabulary_dir / f"{role}.txt"
        new = [*dict.fromkeys(former + read_vocabulary(path))]
        write_vocabulary(path, new)
        logging.info("The %s side has %d new words", role, len(new) - len(former))


def check_begins_with_words(initial: RunDirectory, run: RunDirectory) -> None:
    """Checks that the vocabularies of a run begin with those of the initial one."""
    for role in ROLES:
        former = initial.vocabulary_tokens(role)
        if run.vocabulary_tokens(role)[: len(former)] != former:
            raise input_error(
                f"{_FLAG}={initial.path}",
                f"it was trained again since {run.path} was begun, with other vocabularies",
                "Train with --overwrite",
            )
