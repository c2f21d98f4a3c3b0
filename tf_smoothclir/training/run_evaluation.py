"""Evaluating a trained run again: on other splits or sets, with a part of it, as a re-ranker."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
from tf_smoothclir.protocols.scorer import TwoStageRetriever
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import make_directory, write_json
from tf_smoothclir.training.retrievers import load_scorer
from tf_smoothclir.training.run_checks import check_cut, check_retriever, check_trained
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.train import tokenized_set_of
from tf_smoothclir.training.two_stages import check_first_stage, load_first_stage


def evaluate_run(
    run: RunDirectory,
    data: DataSettings,
    splits: Sequence[str],
    *,
    dim: int = 0,
    retriever: str = "auto",
    first_stage: RunDirectory | None = None,
    rerank_depth: int = 100,
    output_dir: str = "",
) -> tuple[dict, Path]:
    """Evaluates a run; writes metrics.json and the TREC files of each split.

    Args:
        data: Names the set, whose tokens the vocabularies of the run give.
        dim: Of the vectors, so many numbers count; 0 for all.
        retriever: What ranks; "auto" for what the run ranks with.
        first_stage: A run whose first `rerank_depth` ranks this run orders again.
        output_dir: Empty for a directory in the run, named after all that is not the run's own.

    Returns:
        The content of metrics.json, and the directory.
    """
    settings, source = dataclasses.replace(run.settings(), data=data), source_of(data)
    check_cut(settings, dim)
    retriever = "" if retriever == "auto" else retriever
    if retriever:
        check_retriever(settings, retriever)
    check_trained(run)
    parts = [f"dim-{dim}"] * bool(dim) + [f"by-{retriever}"] * bool(retriever)
    ranking = ""
    if first_stage:
        check_first_stage(first_stage, run, source)
        parts.append(f"over-{first_stage.path.resolve().name}")
        ranking = f"first {rerank_depth} ranks of {first_stage.path}, re-ranked by this run"
    if not run.was_trained_on(source.fingerprint()):
        parts.append(f"on-{source.name.replace('/', '-')}-{source.fingerprint()[:8]}")
    path = make_directory(Path(output_dir or run.evaluation.joinpath(*parts)), "--output_dir")
    tokenized_set = tokenized_set_of(source, settings, run, splits)
    retrieval_set, negatives = tokenized_set.retrieval_set, settings.training.negatives
    graded = load_scorer(run, tokenized_set, dim, retriever)
    scorer = graded.scorer
    if first_stage:
        first = load_first_stage(first_stage, retrieval_set, data.cache_dir)
        scorer = TwoStageRetriever(first, scorer, retrieval_set, ranks=rerank_depth)
    evaluations = {
        split: evaluation.graded(graded.cut_points)
        for split, evaluation in evaluate_splits(
            retrieval_set, scorer, splits, negatives=negatives, trec_dir=path
        ).items()
    }
    content = metrics_content(evaluations, negatives, ranking=ranking)
    write_json(path / "metrics.json", content)
    return content, path
