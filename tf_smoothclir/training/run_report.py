"""The end of a run: metrics of its splits, plots, and the run report."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.evaluation.calibration import calibrated
from tf_smoothclir.evaluation.evaluate import (
    HITS,
    NEGATIVES_SEED,
    NOTHING_MEASURED,
    Evaluation,
    by_grade,
    evaluate_splits,
    metrics_content,
)
from tf_smoothclir.evaluation.report import components_table, write_report
from tf_smoothclir.protocols.cut_points import NEVER_RELEVANT, CutPoints, write_cut_points
from tf_smoothclir.protocols.scorer import Retriever
from tf_smoothclir.storage.files import write_json
from tf_smoothclir.training.checkpoints import Progress
from tf_smoothclir.training.peak_memory import peak_memory
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import RunModels
from tf_smoothclir.training.set_retrievers import scorer_of_pairs

EVALUATED_SPLITS = ("test", "validation")
_DRAWN_POSITIONS = 100
_NAMES = {  # of losses and towers, where the value of the flag says too little
    "sosl": "Smooth Ordinal Search Loss",
    "mse": "mean squared error",
    "three_part_l2": "3PartL2",
    "approx_ndcg": "ApproxNDCG",
    "list_mle": "ListMLE",
    "cnn": "DSSM-CNN",
    "lstm": "DSSM-LSTM",
}
_OF_TOWERS = "Weight of a word by its position, in the towers"


def evaluate_and_report(
    run: RunDirectory,
    models: RunModels,
    retrievers: Mapping[str, Retriever],
    tokenized_set: TokenizedSet,
    progress: Progress,
) -> dict:
    """Evaluates a run; writes its cut points, plots and report and, last, `metrics.json`."""
    settings, is_judged = models.settings, tokenized_set.retrieval_set.source.is_judged
    chosen, negatives = settings.retrieval.ranks_with, settings.training.negatives
    evaluations = {
        name: evaluate_splits(
            tokenized_set.retrieval_set,
            retriever,
            EVALUATED_SPLITS,
            negatives=negatives,
            trec_dir=run.evaluation_of("" if name == chosen else name),
        )
        if is_judged
        else {"test": NOTHING_MEASURED}
        for name, retriever in retrievers.items()
    }
    cut_points = {
        name: calibrated_on(tokenized_set, retrievers[name], splits["validation"], negatives)
        if is_judged
        else NEVER_RELEVANT
        for name, splits in evaluations.items()
    }
    with run.writing(run.cut_points) as path:
        write_cut_points(path, cut_points)
    evaluations = {
        name: {split: evaluation.graded(cut_points[name]) for split, evaluation in splits.items()}
        for name, splits in evaluations.items()
    }
    result = metrics_content(evaluations[chosen], negatives)
    if not is_judged:
        result["rules"] = {}
    result["set"] = _sizes(tokenized_set.retrieval_set)
    result["training"] = {
        "pairs_per_second": round(progress.pairs / max(progress.seconds, 1e-9), 1),
        "seconds": round(progress.seconds + models.seconds, 3),
        "pairs": progress.pairs,
        "epochs": progress.epoch,
        "best_epoch": progress.best_epoch,
        "peak_rss_mb": round(peak_memory() / 2**20, 1),
    }
    result["history"] = progress.history
    result["thresholds"] = list(models.thresholds)
    result["cut_points"] = dataclasses.asdict(cut_points[chosen])
    result |= _of_components(models, evaluations)
    captions = _draw(run, models, progress, evaluations[chosen]["test"], cut_points[chosen])
    _report(run, models, tokenized_set, evaluations, result, captions)
    with run.writing(run.metrics) as path:
        write_json(path, result)
    return result


def _sizes(retrieval_set: RetrievalSet) -> dict[str, int]:
    """Sizes of a set: numbers of queries, documents and judgments."""
    if not retrieval_set.source.is_judged:
        return {"parallel sentences": len(retrieval_set.query_ids)}
    return {
        "queries": len(retrieval_set.query_ids),
        "documents": len(retrieval_set.document_ids),
        "judgments": len(retrieval_set.grades),
        **{f"{split} queries": len(retrieval_set.queries_in(split)) for split in EVALUATED_SPLITS},
    }


def calibrated_on(
    tokenized_set: TokenizedSet, retriever: Retriever, validation: Evaluation, negatives: int
) -> CutPoints:
    """The cut points between the grades of a retriever."""
    scorer, alone = scorer_of_pairs(retriever), None
    if scorer is not None:
        retrieval_set = tokenized_set.retrieval_set
        lists = candidate_lists(
            retrieval_set, "validation", negatives=negatives, seed=NEGATIVES_SEED
        )
        alone = by_grade(scorer.score(lists), lists.grades, retrieval_set.num_grades)
    return calibrated(validation, alone)


def _of_components(models: RunModels, evaluations: Mapping[str, Mapping[str, Evaluation]]) -> dict:
    """Choices of a run besides the towers, and metrics of its parts."""
    content = {}
    if models.lexical is not None:
        content["lexical"] = models.lexical.choices()
    if models.fusion is not None:
        content["hybrid"] = dataclasses.asdict(models.fusion)
    if models.reranker is not None:
        content["reranker"] = dataclasses.asdict(models.reranker.choices)
    if len(evaluations) > 1:
        content["components"] = {
            name: {split: evaluation.metrics for split, evaluation in splits.items()}
            for name, splits in evaluations.items()
            if name != models.settings.retrieval.ranks_with
        }
    return content


def _draw(
    run: RunDirectory,
    models: RunModels,
    progress: Progress,
    test: Evaluation,
    cut_points: CutPoints,
) -> dict[str, str]:
    """Draws the plots and returns caption -> path relative to the run."""
    from tf_smoothclir.evaluation import plots  # here, because matplotlib takes half a second

    run.plots.mkdir(exist_ok=True)
    drawn = {}
    if progress.history:
        drawn["Learning curves"] = run.plots / "learning_curves.png"
        plots.learning_curves(drawn["Learning curves"], progress.history)
    of_towers = _profiles_of_towers(models)
    if of_towers:
        drawn[_OF_TOWERS] = run.plots / "positions_of_towers.png"
        plots.position_profiles(drawn[_OF_TOWERS], of_towers)
    if models.lexical is None:
        drawn["Scores by grade, test"] = run.plots / "scores_by_grade.png"
        plots.score_density(
            drawn["Scores by grade, test"], test.scores_by_grade, list(models.thresholds)
        )
    elif models.lexical.fields:
        drawn["Weight of a word by its position"] = run.plots / "positions.png"
        positions = np.arange(min(_DRAWN_POSITIONS, models.settings.text.max_document_tokens))
        profiles = {str(field): field(positions) for field in models.lexical.fields}
        plots.position_profiles(drawn["Weight of a word by its position"], profiles)
    if test.confusion is None:
        return {caption: str(path.relative_to(run.path)) for caption, path in drawn.items()}
    drawn["Predicted grades, candidate lists, test"] = run.plots / "grades.png"
    plots.confusion(drawn["Predicted grades, candidate lists, test"], test.confusion)
    if test.hits is not None:
        caption = f"Grades of the first {HITS} hits in the collection, test"
        drawn[caption] = run.plots / "grades_of_hits.png"
        plots.grades_of_hits(drawn[caption], test.shares_by_grade(), cut_points.shares)
    return {caption: str(path.relative_to(run.path)) for caption, path in drawn.items()}


def _profiles_of_towers(models: RunModels) -> dict[str, np.ndarray]:
    """Label -> weights of the first positions, of towers that have them."""
    if models.towers is None:
        return {}
    text = models.settings.text
    towers = {
        "queries": (models.towers.query_tower, text.max_query_tokens),
        "documents": (models.towers.document_tower, text.max_document_tokens),
    }
    if models.towers.is_shared:
        towers = {"queries and documents": towers["documents"]}
    found = {
        label: tower.position_profile(min(_DRAWN_POSITIONS, longest))
        for label, (tower, longest) in towers.items()
    }
    return {label: profile for label, profile in found.items() if profile is not None}


def _report(run, models: RunModels, tokenized_set, evaluations, result, captions) -> None:
    settings = models.settings
    retriever, retrieval_set = settings.retrieval.ranks_with, tokenized_set.retrieval_set
    write_report(
        run.report,
        title=f"{retrieval_set.source.name}: {_title(models)}",
        facts={
            "queries": f"{len(retrieval_set.query_ids):,} ({settings.data.query_language})",
            "documents": f"{len(retrieval_set.document_ids):,}"
            f" ({retrieval_set.source.document_language})",
            "vocabularies": " and ".join(f"{len(tokenized_set.vocabulary(r)):,}" for r in ROLES),
            **_facts_of_models(models, result),
            "cut points between grades": _cut_points_fact(result["cut_points"])
            if retrieval_set.source.is_judged
            else "none: without judgments, predicted grades are 0",
            "peak memory": f"{result['training']['peak_rss_mb']:,.0f} MB",
        },
        content=result,
        evaluations=evaluations[retriever],
        sections={"Components": components_table(evaluations)} if len(evaluations) > 1 else {},
        plots=captions,
        commands=[
            f"smoothclir-evaluate --run_dir={run.path}",
            f"smoothclir-export --run_dir={run.path}",
            f"smoothclir-search --export_dir={run.path} --query='...'",
        ][: 3 if settings.retrieval.ranker == "psq" else 1],  # others cannot be exported
        flags=settings.flag_lines(),
    )


def _title(models: RunModels) -> str:
    names = ["two towers"] if models.towers else []
    names += [models.lexical.name] if models.lexical else []
    return " and ".join(names)


def _in_words(name: str) -> str:
    """The value of a flag for people, such as "average pooling"."""
    return _NAMES.get(name, name.replace("_", " "))


def _cut_points_fact(cut_points: dict[str, tuple[float, ...]]) -> str:
    scores, shares = (
        ", ".join(f"{value:.4g}" for value in cut_points[kind]) for kind in ("scores", "shares")
    )
    return f"scores {scores}; shares of the first hit's score {shares} (best for validation)"


def _facts_of_models(models: RunModels, result: dict) -> dict[str, str]:
    """Facts about the models and how they were trained."""
    facts, settings, training = {}, models.settings, result["training"]
    if models.towers is not None:
        best = f"best {training['best_epoch']} by validation {settings.training.select_metric}"
        seconds = training["seconds"] - models.seconds
        model = settings.model
        facts["towers"] = (
            f"{_in_words(model.tower)}, {model.dim:,} dimensions, ε = {model.epsilon:g}"
        )
        objective = settings.training.objective
        facts["loss"] = _in_words(model.loss if objective == "ranking" else objective)
        facts["thresholds"] = ", ".join(f"{value:.4g}" for value in result["thresholds"])
        facts["epochs"] = f"{training['epochs']}, {best}"
        facts["training"] = (
            f"{training['pairs']:,} pairs in {seconds:.0f} s,"
            f" {training['pairs_per_second']:,.0f} pairs/s"
        )
    if models.lexical is not None:
        facts |= models.lexical.facts()
    if models.fusion is not None:
        facts["chosen on validation for the hybrid"] = str(models.fusion)
    if models.reranker is not None:
        facts["re-ranker, its weight chosen on validation"] = models.reranker.describe()
    return facts
