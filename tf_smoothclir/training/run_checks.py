"""Checks of what a trained run can rank by, before its data are read."""

from __future__ import annotations

from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.tasks import check_dim
from tf_smoothclir.utils.errors import input_error


def check_trained(run: RunDirectory) -> None:
    """Checks that a run has all of its models, before its data are read."""
    for name in run.settings().retrieval.families:
        family(name).check(run)


def check_cut(settings: RunSettings, dim: int) -> None:
    """Checks that the vectors of a run may be cut to their first `dim` numbers; 0 keeps all."""
    reranker, lacks = settings.retrieval.reranker, ""
    if not settings.retrieval.with_task:
        lacks = f"ranks by --retriever={settings.retrieval.retriever}, and has no vectors"
    elif reranker != "none":
        lacks = f"re-ranks by --reranker={reranker}, which was trained on whole vectors"
    if dim and lacks:
        raise input_error(
            f"--dim={dim}",
            f"the run {lacks}",
            "Leave --dim out, or train with --retriever=dense or hybrid and no --reranker",
        )
    check_dim(settings.model, dim)


def check_retriever(settings: RunSettings, retriever: str) -> None:
    """Checks that a run has what ranks by `retriever`."""
    own, ranked_by = settings.retrieval.retriever, settings.retrieval.ranks_with
    if retriever == "reranked" != ranked_by:
        raise input_error(
            f"--retriever={retriever}",
            "the run was trained without a re-ranker",
            "Leave the flag out, or train with --reranker=late_interaction",
        )
    if retriever not in (ranked_by, *with_parts(own)):
        raise input_error(
            f"--retriever={retriever}",
            f"the run ranks with --retriever={own} and has nothing else to rank by",
            f"Leave the flag out, or train with --retriever={retriever}",
        )
