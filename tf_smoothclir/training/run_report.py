"""What a run ends with: metrics of its splits, plots, and the run report."""

from __future__ import annotations

from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.evaluation.evaluate import (
    Evaluation,
    evaluate_splits,
    metrics_content,
)
from tf_smoothclir.evaluation.report import write_report
from tf_smoothclir.protocols.scorer import GradedScorer
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.peak_memory import peak_memory
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.files import write_json

EVALUATED_SPLITS = ("test", "validation")


def evaluate_and_report(
    settings: RunSettings,
    run: RunDirectory,
    graded: GradedScorer,
    tokenized_set: TokenizedSet,
    progress: Progress,
) -> dict:
    """Evaluates a scorer and writes the plots, the report and, last, `metrics.json`.

    Args:
        settings: Of the run.
        run: Its directory.
        graded: The scorer of the model with the weights of its best epoch, and its grades.
        tokenized_set: The set.
        progress: Of the training.

    Returns:
        The content of `metrics.json`.
    """
    negatives = settings.training.negatives
    evaluations = evaluate_splits(
        tokenized_set.retrieval_set,
        graded.scorer,
        EVALUATED_SPLITS,
        negatives=negatives,
        predict_grade=graded.predict_grade,
        trec_dir=run.evaluation,
    )
    result = metrics_content(evaluations, negatives)
    result["training"] = {
        "pairs_per_second": round(progress.pairs / max(progress.seconds, 1e-9), 1),
        "seconds": round(progress.seconds, 3),
        "pairs": progress.pairs,
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "peak_rss_mb": round(peak_memory() / 2**20, 1),
    }
    result["history"] = progress.history
    result["thresholds"] = list(graded.thresholds)
    captions = _draw(run, result["thresholds"], progress, evaluations["test"])
    _report(run, settings, tokenized_set, evaluations, result, captions)
    write_json(run.metrics, result)
    return result


def _draw(run, thresholds, progress, test: Evaluation) -> dict[str, str]:
    """Draws the plots and returns caption -> path relative to the run."""
    from tf_smoothclir.evaluation import plots  # here, because matplotlib takes half a second

    run.plots.mkdir(exist_ok=True)
    drawn = {"Learning curves": run.plots / "learning_curves.png"}
    plots.learning_curves(drawn["Learning curves"], progress.history)
    drawn["Scores by grade, test"] = run.plots / "scores_by_grade.png"
    plots.score_density(drawn["Scores by grade, test"], test.scores_by_grade, thresholds)
    if test.confusion is not None:
        drawn["Predicted grades, test"] = run.plots / "grades.png"
        plots.confusion(drawn["Predicted grades, test"], test.confusion)
    return {caption: str(path.relative_to(run.path)) for caption, path in drawn.items()}


def _report(run, settings, tokenized_set, evaluations, result, captions) -> None:
    data, model, training = settings.data, settings.model, result["training"]
    retrieval_set = tokenized_set.retrieval_set
    write_report(
        run.report,
        title=f"{retrieval_set.source.name}: {model.loss}, {model.tower}, ε = {model.epsilon:g}",
        facts={
            "queries": f"{len(retrieval_set.query_ids):,} ({data.query_language})",
            "documents": f"{len(retrieval_set.document_ids):,}"
            f" ({retrieval_set.source.document_language})",
            "vocabularies": " and ".join(f"{len(tokenized_set.vocabulary(r)):,}" for r in ROLES),
            "thresholds": ", ".join(f"{value:.4g}" for value in result["thresholds"]),
            "epochs": f"{training['epochs']}, best {training['best_epoch']} by validation"
            f" {settings.training.select_metric}",
            "training": f"{training['pairs']:,} pairs in {training['seconds']:.0f} s,"
            f" {training['pairs_per_second']:,.0f} pairs/s",
            "peak memory": f"{training['peak_rss_mb']:,.0f} MB",
        },
        evaluations=evaluations,
        rules=result["rules"],
        plots=captions,
        commands=[
            f"smoothclir-evaluate --run_dir={run.path}",
            f"smoothclir-export --run_dir={run.path}",
            f"smoothclir-search --export_dir={run.path} --query='...'",
        ],
        flags=settings.flag_lines(),
    )
