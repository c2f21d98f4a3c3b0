"""Evaluating a trained run again: on other splits or sets, with a part of it, as a re-ranker."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.data.preparation import tokenize_set
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
from tf_smoothclir.protocols.scorer import TwoStageRetriever
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.storage.files import make_directory, write_json
from tf_smoothclir.training.evaluated_sets import set_of_other_grades, warn_of_figures
from tf_smoothclir.training.run_checks import check_cut, check_retriever, check_trained
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import load_scorer
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
    measures: Sequence[str] = (),
) -> tuple[dict, Path]:
    """Evaluates a run; writes metrics.json and the TREC files of each split.

    Args:
        data: Names the set, whose tokens the vocabularies of the run give.
        dim: Of the vectors, so many numbers count; 0 for all.
        retriever: What ranks; "auto" for what the run ranks with.
        first_stage: A run whose first `rerank_depth` ranks this run orders again.
        output_dir: Empty for a directory in the run, named after all that is not the run's own.
        measures: Further ones, by their names in `ir_measures`.

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
    another_set = not run.was_trained_on(source.fingerprint())
    if another_set:
        parts.append(f"on-{source.name.replace('/', '-')}-{source.fingerprint()[:8]}")
    path = make_directory(Path(output_dir or run.evaluation.joinpath(*parts)), "--output_dir")
    num_grades, negatives = len(settings.model.thresholds) + 1, settings.training.negatives
    if another_set:
        retrieval_set = set_of_other_grades(source, data.split_seed)
        tokenized_set = tokenize_set(retrieval_set, settings.text, data.cache_dir, run.vocabulary)
    else:
        tokenized_set = tokenized_set_of(source, settings, run, splits)
        retrieval_set = tokenized_set.retrieval_set
    trained_on = run.settings().data
    is_own = not another_set and data == trained_on
    warn_of_figures(trained_on, num_grades, retrieval_set, *splits, is_own=is_own)
    graded = load_scorer(run, tokenized_set, dim, retriever)
    scorer = graded.scorer
    cut_points = graded.cut_points if retrieval_set.num_grades == num_grades else None
    if first_stage:
        first = load_first_stage(first_stage, retrieval_set, data.cache_dir)
        scorer = TwoStageRetriever(first, scorer, retrieval_set, ranks=rerank_depth)
    evaluations = {
        split: evaluation.graded(cut_points)
        for split, evaluation in evaluate_splits(
            retrieval_set, scorer, splits, negatives=negatives, trec_dir=path, measures=measures
        ).items()
    }
    content = metrics_content(evaluations, negatives, ranking=ranking)
    write_json(path / "metrics.json", content)
    return content, path
