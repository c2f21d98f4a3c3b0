"""A trained run as the first stage of another: it finds the documents that the other one orders."""

from __future__ import annotations

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.protocols.scorer import Retriever
from tf_smoothclir.training.run_checks import check_trained
from tf_smoothclir.training.run_config import RunConfig
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_scorer
from tf_smoothclir.utils.errors import input_error


def check_first_stage(first_stage: RunDirectory, run: RunDirectory, source: Source) -> None:
    """Checks that a run can be the first stage of another: is trained, and on the same queries."""
    check_trained(first_stage)
    of_first, of_run = (RunConfig.read(one.config).data for one in (first_stage, run))
    seeds = [one.settings().data.split_seed for one in (first_stage, run)]
    reason, named = "", f"--run_dir={run.path}"
    if of_first.fingerprint != of_run.fingerprint:
        reason = f"it was trained on another retrieval set ({of_first.name}) than {named}"
        if of_first.name == of_run.name:
            reason = f"it was trained on other content of {of_first.name} than {named}"
    elif seeds[0] != seeds[1] and source.splits() is None:
        reason = (
            f"its queries were split with --split_seed={seeds[0]}, those of {named} with"
            f" {seeds[1]}: it may have been trained on queries that are evaluated here"
        )
    if reason:
        raise input_error(
            f"--first_stage={first_stage.path}",
            reason,
            "Give a finished run on the same retrieval set and splits",
        )


def load_first_stage(
    run: RunDirectory, retrieval_set: RetrievalSet, cache_dir: str = ""
) -> Retriever:
    """The scorer of a run on a set that another run has opened."""
    tokenized_set = tokenize_set(retrieval_set, run.settings().text, cache_dir, run.vocabulary)
    return load_scorer(run, tokenized_set).scorer
