"""Fine-tuning: a run that begins with the models of another one (`--init_from`).

The new run has the vocabularies of the other one, because weights belong to words. Its towers begin
with the weights of the other's best epoch. Its translation table is learned from the new pairs and
mixed with the other's; the validation queries decide by which share, as for a dictionary.
"""

from __future__ import annotations

import dataclasses

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.plugins import DISTRIBUTIONS, with_parts
from tf_smoothclir.settings.data import LANGUAGES, DataSettings
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.storage.files import copy_file, new_directory
from tf_smoothclir.storage.folder import joint_digest
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
_OF_ITS_START = {
    "query_vocabulary": "",
    "document_vocabulary": "",
    "initial_vectors": "random",
    "query_embeddings": "",
    "document_embeddings": "",
    "dictionary": "",
    "init_from": "",
    "distribution": "none",
}


def settings_to_begin_with(path: str) -> RunSettings:
    """The settings of a run that begins with the run in `path`: its own, on other data."""
    there = RunDirectory.load(path, _FLAG).settings()
    kept = {name: getattr(there.data, name) for name in (*LANGUAGES, "cache_dir")}
    data = DataSettings(**kept).of_another_set()
    distribution = DISTRIBUTIONS.plugin(there.training.distribution).settings
    others = tuple(group for group in there.of_plugins if type(group) is not distribution)
    return changed(dataclasses.replace(there, data=data, of_plugins=others), _OF_ITS_START)


def initial_run(settings: RunSettings) -> RunDirectory | None:
    """The run that a run with these settings begins with; None for none."""
    path = settings.training.init_from
    if not path:
        return None
    run = RunDirectory.load(path, _FLAG)
    there, here = run.settings().values(), settings.values()
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


def keep_vocabularies(initial: RunDirectory, run: RunDirectory) -> None:
    """Copies the vocabularies of the initial run to a new one."""
    with new_directory(run.vocabulary) as temporary:
        for role in ROLES:
            copy_file(initial.vocabulary / f"{role}.txt", temporary / f"{role}.txt")


def check_same_words(initial: RunDirectory, run: RunDirectory) -> None:
    """Checks that the weights of the initial run belong to the vocabularies of a run."""
    digests = {
        joint_digest(one.vocabulary / f"{role}.txt" for role in ROLES) for one in (initial, run)
    }
    if len(digests) > 1:
        raise input_error(
            f"{_FLAG}={initial.path}",
            f"it was trained again since {run.path} was begun, with other vocabularies",
            "Train with --overwrite",
        )
