"""The end of a run: metrics of its splits, plots, and the run report."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from tf_smoothclir.data.retrieval_set import Languages, RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.evaluation.calibration import calibrated
from tf_smoothclir.evaluation.evaluate import (
    NOTHING_MEASURED,
    Evaluation,
    evaluate_splits,
    metrics_content,
)
from tf_smoothclir.evaluation.report import KNOWN, components_table, examples, write_report
from tf_smoothclir.plugins import family, with_parts
from tf_smoothclir.protocols.text_search import BEYOND, NEVER_RELEVANT, write_cut_points
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.settings.training import CROSS_VALIDATION
from tf_smoothclir.storage.files import write_json
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet, RunModels
from tf_smoothclir.training.short_queries import grades_by_length, hits_of_short_queries
from tf_smoothclir.utils.memory import peak_memory
from tf_smoothclir.utils.printing import markdown_table

EVALUATED_SPLITS = ("test", "validation")
_CROSSED = (
    "every judged query, ranked by a model that was not trained on it; the model that is kept is"
    " another one, trained on the training queries"
)
_OF_FIRST_HITS = {
    "right": "relevant",
    "recall": "of these, predicted relevant",
    "precision": "of those predicted relevant, relevant",
}


def evaluate_and_report(
    run: RunDirectory, over: ModelsOverSet, progress: Progress, crossed: Evaluation | None = None
) -> dict:
    """Evaluates a run; writes its cut points, plots and report and, last, `metrics.json`."""
    # Where there is cross-validation over all judged queries, it heads the report.
    models, tokenized_set, retrievers = over.run_models, over.tokenized_set, over.retrievers
    settings, retrieval_set = over.settings, over.retrieval_set
    is_judged = retrieval_set.source.is_judged
    chosen, negatives = settings.retrieval.ranks_with, settings.training.negatives
    evaluations = {
        name: {"test": NOTHING_MEASURED}
        | evaluate_splits(
            retrieval_set,
            retriever,
            [split for split in EVALUATED_SPLITS if split in retrieval_set.judged_splits],
            negatives=negatives,
            trec_dir=run.evaluation / ("" if name == chosen else f"components/{name}"),
        )
        for name, retriever in retrievers.items()
    }
    of_short = hits_of_short_queries(over) if is_judged else {}
    cut_points = {
        name: calibrated(splits["validation"], of_short[name]) if is_judged else NEVER_RELEVANT
        for name, splits in evaluations.items()
    }
    with run.writing(run.cut_points) as path:
        write_cut_points(path, cut_points)
    evaluations = {
        name: {split: evaluation.graded(cut_points[name]) for split, evaluation in splits.items()}
        for name, splits in evaluations.items()
    }
    reported = evaluations[chosen]
    if crossed is not None:
        reported = {CROSS_VALIDATION: crossed, **reported}
    result = metrics_content(reported, negatives)
    if crossed is not None:
        result["rules"] |= {CROSS_VALIDATION: _CROSSED}
    if not is_judged:
        result["rules"] = {}
    if "test" in retrieval_set.judged_splits:
        result["query_lengths"] = grades_by_length(over, chosen, cut_points[chosen])
    result["set"] = _sizes(tokenized_set.retrieval_set)
    result["training"] = _costs(models, progress)
    result["history"] = progress.history
    result["thresholds"] = list(models.thresholds)
    result["cut_points"] = dataclasses.asdict(cut_points[chosen])
    result |= _of_components(models, evaluations)
    captions = _draw(run, models, progress, evaluations[chosen]["test"])
    _report(run, models, tokenized_set, evaluations, reported, result, captions)
    with run.writing(run.metrics) as path:
        write_json(path, result)
    return result


def _costs(models: RunModels, progress: Progress) -> dict[str, float]:
    """What the training took."""
    return {
        "pairs_per_second": round(progress.pairs / max(progress.seconds, 1e-9), 1),
        "seconds": round(progress.seconds + models.seconds, 3),
        "pairs": progress.pairs,
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "peak_rss_mb": round(peak_memory() / 2**20, 1),
    }


def left_out(asked: RunSettings, kept: RunSettings) -> str:
    """What reports and logs say where parts of the retriever count for nothing; else ""."""
    there, alone = kept.retrieval.families, kept.retrieval.retriever
    parts = [part for part in asked.retrieval.families if part not in there]
    part = " and ".join(part for part in parts if with_parts(part) == (part,))
    if not part:
        return ""
    return (
        f"validation queries are ranked no better with --retriever={part} than by {alone} alone,"
        f" so it is not kept; --retriever={part} trains it anyway"
    )


def _sizes(retrieval_set: RetrievalSet) -> dict[str, int]:
    """Sizes of a set: numbers of queries, documents and judgments."""
    if not retrieval_set.source.is_judged:
        return {"parallel sentences": len(retrieval_set.query_ids)}
    known = sum(retrieval_set.known_queries["test"])
    return {
        "queries": len(retrieval_set.query_ids),
        "documents": len(retrieval_set.document_ids),
        "judgments": len(retrieval_set.grades),
        **{
            f"{split} queries": len(retrieval_set.queries_in(split))
            for split in EVALUATED_SPLITS
            if split in retrieval_set.judged_splits
        },
        **({KNOWN: known} if known else {}),
    }


def _of_components(models: RunModels, evaluations: Mapping[str, Mapping[str, Evaluation]]) -> dict:
    """Choices of a run besides the towers, and metrics of its parts."""
    content = {}
    for name, model in models.items():
        content |= family(name).metrics(model)
    if len(evaluations) > 1:
        content["components"] = {
            name: {split: evaluation.metrics for split, evaluation in splits.items()}
            for name, splits in evaluations.items()
            if name != models.settings.retrieval.ranks_with
        }
    return content


def _draw(
    run: RunDirectory, models: RunModels, progress: Progress, test: Evaluation
) -> dict[str, str]:
    """Draws the plots and returns caption -> path relative to the run."""
    retrieval = models.settings.retrieval
    has_scores = retrieval.retriever == retrieval.with_task and any(map(len, test.scores_by_grade))
    if not (progress.history or has_scores):
        return {}
    from tf_smoothclir.evaluation import plots  # here, because matplotlib takes half a second

    run.plots.mkdir(exist_ok=True)
    drawn = {}
    if progress.history:
        drawn["Learning curves"] = run.plots / "learning_curves.png"
        plots.learning_curves(drawn["Learning curves"], progress.history)
    if has_scores:
        drawn["Scores by grade, test"] = run.plots / "scores_by_grade.png"
        plots.score_density(
            drawn["Scores by grade, test"], test.scores_by_grade, list(models.thresholds)
        )
    return {caption: str(path.relative_to(run.path)) for caption, path in drawn.items()}


def _texts(retrieval_set: RetrievalSet) -> dict[str, str]:
    """How many texts of each kind a set has."""
    source, queries = retrieval_set.source, retrieval_set.query_ids
    if source.is_parallel:
        documents = sum(1 for _ in source.further_texts())
        return {"parallel sentences": f"{len(queries):,}", "documents": f"{documents:,}"}
    return {
        "queries": _counted(queries, retrieval_set.query_languages),
        "documents": _counted(retrieval_set.document_ids, retrieval_set.document_languages),
    }


def _counted(ids: Sequence[str], languages: Languages) -> str:
    """How many texts there are, and in which languages where any is known."""
    return f"{len(ids):,} ({languages})" if any(languages.codes) else f"{len(ids):,}"


def _report(run, models: RunModels, tokenized_set, evaluations, reported, result, captions) -> None:
    settings = models.settings
    retriever, retrieval_set = settings.retrieval.ranks_with, tokenized_set.retrieval_set
    titles = [family(name).title(model) for name, model in models.items()]
    training = result["training"]
    training = {**training, "seconds_of_steps": training["seconds"] - models.seconds}
    facts_of_models: dict[str, str] = {}
    for name, model in models.items():
        facts_of_models |= family(name).facts(model, settings, training)
    without = left_out(run.settings_asked_for(), settings)
    write_report(
        run.report,
        title=f"{retrieval_set.source.name}: {' and '.join(filter(None, titles))}",
        facts={
            **_texts(retrieval_set),
            "vocabularies": " and ".join(f"{len(tokenized_set.vocabulary(r)):,}" for r in ROLES),
            **facts_of_models,
            **({"left out": without} if without else {}),
            "cut points between grades": _cut_points_fact(result["cut_points"])
            if retrieval_set.source.is_judged
            else "none: without judgments, predicted grades are 0",
            "peak memory": f"{result['training']['peak_rss_mb']:,.0f} MB",
        },
        content=result,
        evaluations=reported,
        sections={
            **({"Components": components_table(evaluations)} if len(evaluations) > 1 else {}),
            **_by_length(result),
            **dict(examples(retrieval_set, evaluations[retriever]["test"])),
        },
        plots=captions,
        commands=[
            f"smoothclir-evaluate --run_dir={run.path}",
            f"smoothclir-export --run_dir={run.path}",
            f"smoothclir-search --export_dir={run.path} --query='...'",
        ][: 3 if family(settings.retrieval.retriever).is_published else 1],
        flags=settings.flag_lines(),
    )


def _by_length(result: Mapping) -> dict[str, str]:
    """A section about predicted grades of queries of each length, if they were measured."""
    rows = [
        [label, f"{figures['queries']:,}", *(f"{figures[name]:.1%}" for name in _OF_FIRST_HITS)]
        for label, figures in result.get("query_lengths", {}).items()
    ]
    header = ["test queries", "number", *_OF_FIRST_HITS.values()]
    return {"First hits by length of the query": markdown_table(header, rows)} if rows else {}


def _cut_points_fact(cut_points: dict[str, Any]) -> str:
    scores, shares = (
        ", ".join(f"{value:.4g}" if value < BEYOND else "none" for value in cut_points[kind])
        for kind in ("scores", "shares")
    )
    if power := cut_points["power"]:
        scores += f" times (known words of the query)^{power:.2g}"
    fact = f"scores {scores}; shares of the first hit's score {shares} (reliable in validation)"
    return fact + "; none: no score makes the grade reliable, so it is not predicted" * (
        BEYOND in cut_points["scores"]
    )
