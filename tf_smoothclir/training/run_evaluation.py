"""Evaluating a trained run again, on other splits or sets, or a foreign encoder as it is."""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.splits import read_digests
from tf_smoothclir.evaluation.evaluate import evaluate_splits, metrics_content
from tf_smoothclir.evaluation.metrics import depth_for
from tf_smoothclir.foreign_encoders.opening import EncodedSet, encoder_of
from tf_smoothclir.protocols.scorer import Retriever
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.settings.data import DataSettings, EncoderSettings
from tf_smoothclir.storage.files import make_directory, write_json
from tf_smoothclir.training import run_models
from tf_smoothclir.training.evaluated_sets import another_set, set_of_other_grades, warn_of_figures
from tf_smoothclir.training.run_data import retrieval_set_of, tokenize_for_run
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error


def evaluate_run(
    run: RunDirectory,
    data: DataSettings,
    splits: Sequence[str] = (),
    *,
    dim: int = 0,
    retriever: str = "auto",
    output_dir: str = "",
    measures: Sequence[str] = (),
) -> tuple[dict, Path]:
    """Evaluates a run; writes metrics.json and TREC files, and returns what and where."""
    # Without splits, "test", or all judged queries of another set that has none.
    # The vectors count with their first `dim` numbers, 0 for all. The directory is by
    # default one in the run, named after all that is not the run's own.
    settings, source = dataclasses.replace(run.settings(), data=data), source_of(data)
    retriever = "" if retriever == "auto" else retriever
    run_models.check_cut(settings, dim)
    if retriever:
        run_models.check_retriever(settings, retriever)
    run_models.check_trained(run)
    parts = [f"dim-{dim}"] * bool(dim) + [f"by-{retriever}"] * bool(retriever)
    trained_on, is_other = run.settings().data, not run.was_trained_on(source.fingerprint())
    if is_other:
        parts.append(f"on-{source.name.replace('/', '-')}-{source.fingerprint()[:8]}")
    path = make_directory(Path(output_dir or run.evaluation.joinpath(*parts)), "--output_dir")
    trained = read_digests(run.trained_queries)
    if is_other:
        retrieval_set = another_set(source, data, trained_on, splits, trained)
    else:
        retrieval_set = retrieval_set_of(source, settings, splits or ("test",), run)
    tokenized_set, splits = tokenize_for_run(retrieval_set, settings, run), splits or ("test",)
    num_grades = len(settings.model.thresholds) + 1
    warn_of_figures(trained, retrieval_set, *splits, is_own=not is_other and data == trained_on)
    ranks, cut_points = run_models.load_retriever(run, tokenized_set, dim, retriever)
    if retrieval_set.num_grades != num_grades:
        cut_points = None
    negatives = settings.training.negatives
    return _measured(retrieval_set, ranks, splits, negatives, path, measures, cut_points)


def evaluate_encoder(
    settings: EncoderSettings,
    data: DataSettings,
    splits: Sequence[str],
    *,
    negatives: int = 40,
    output_dir: str = "",
    measures: Sequence[str] = (),
) -> tuple[dict, Path]:
    """Evaluates an encoder as `evaluate_run` does a run, by default into `runs/` and its name."""
    if settings.distill:
        reason = "a student is learned in training, and measured with its run"
        raise input_error("--distill", reason, "Train with it, or leave it out")
    encoder = encoder_of(settings)
    retrieval_set = set_of_other_grades(source_of(data), data.split_seed)
    name = re.sub(r"[^\w.-]+", "-", encoder.name).strip("-")
    path = make_directory(output_dir or f"runs/{name}", "--output_dir")
    encoded = EncodedSet.of(encoder, retrieval_set.source, data.cache_dir)
    retriever = encoded.retriever(retrieval_set)
    return _measured(retrieval_set, retriever, splits, negatives, path, measures)


def _measured(
    retrieval_set: RetrievalSet,
    retriever: Retriever,
    splits: Sequence[str],
    negatives: int,
    path: Path,
    measures: Sequence[str],
    cut_points: CutPoints | None = None,
) -> tuple[dict, Path]:
    """Evaluates what ranks a set; writes into a directory, and returns what and where."""
    evaluations = evaluate_splits(
        retrieval_set, retriever, splits, negatives=negatives, trec_dir=path, measures=measures
    )
    graded = {split: evaluation.graded(cut_points) for split, evaluation in evaluations.items()}
    content = metrics_content(graded, negatives, depth_for(measures))
    write_json(path / "metrics.json", content)
    return content, path
