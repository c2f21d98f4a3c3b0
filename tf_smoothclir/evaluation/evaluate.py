"""Evaluating one split: the figures, the files for other tools, the data of the plots."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation import trec
from tf_smoothclir.evaluation.confidence import bootstrap_interval
from tf_smoothclir.evaluation.encoding import EncodedSet
from tf_smoothclir.evaluation.full_retrieval import DEPTH, retrieval_metrics, top_documents
from tf_smoothclir.evaluation.metrics import RULES, counts, mean_metrics
from tf_smoothclir.evaluation.reranking import confusion_matrix, list_metrics, score_lists

# Evaluation lists are the same for every run, whatever the seed of training.
NEGATIVES_SEED = 13


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """What was measured on a split.

    Attributes:
        metrics: Metric -> mean; full retrieval as `full/...`.
        intervals: Metric -> (low, high), 95% bootstrap interval.
        counts: Metric -> number of queries in the mean.
        confusion: `[K, K]` counts, true grade by predicted grade; None without thresholds.
        scores_by_grade: The scores of the candidate lists, an array for each grade.
    """

    metrics: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    counts: dict[str, int]
    confusion: np.ndarray | None
    scores_by_grade: list[np.ndarray]


def evaluate_split(
    retrieval_set: RetrievalSet,
    encoded: EncodedSet,
    split: str,
    *,
    negatives: int,
    predict_grade: Callable[[np.ndarray], np.ndarray] | None,
    trec_dir: Path | None = None,
) -> Evaluation:
    """Measures re-ranking of the candidate lists and full retrieval on a split.

    Args:
        retrieval_set: The set.
        encoded: Its vectors.
        split: "train", "validation" or "test".
        negatives: Sampled documents of grade 0 in each candidate list.
        predict_grade: From scores `[pairs]` to grades; None where the loss has no thresholds.
        trec_dir: Where run and qrels files go; None writes none.
    """
    num_grades = retrieval_set.num_grades
    lists = candidate_lists(retrieval_set, split, negatives=negatives, seed=NEGATIVES_SEED)
    scores = score_lists(encoded, lists)
    top = top_documents(encoded, lists.query_rows)
    per_query = {
        **list_metrics(encoded, lists, scores, num_grades),
        **retrieval_metrics(retrieval_set, top),
    }
    confusion = None
    if predict_grade is not None:
        confusion = confusion_matrix(lists.grades, np.asarray(predict_grade(scores)), num_grades)
    if trec_dir is not None:
        trec_dir.mkdir(parents=True, exist_ok=True)
        tag = "tf_smoothclir"
        trec.write_list_run(trec_dir / "run.trec", retrieval_set, encoded, lists, scores, tag)
        trec.write_list_qrels(trec_dir / "qrels.trec", retrieval_set, lists)
        trec.write_top_run(trec_dir / "full.run.trec", retrieval_set, top, tag)
        trec.write_qrels(trec_dir / "full.qrels.trec", retrieval_set, lists.query_rows)
    return Evaluation(
        metrics=mean_metrics(per_query),
        intervals={name: bootstrap_interval(v, seed=13) for name, v in per_query.items()},
        counts=counts(per_query),
        confusion=confusion,
        scores_by_grade=[scores[lists.grades == grade] for grade in range(num_grades)],
    )


def rules(negatives: int) -> dict[str, str]:
    """Returns what every figure depends on, for reports."""
    return {
        **RULES,
        "lists": f"candidate lists: the judged documents and {negatives} sampled ones of grade 0,"
        f" drawn with seed {NEGATIVES_SEED}",
        "full": "full/...: ranking of the whole collection, relevant is the highest grade,"
        f" {DEPTH} documents deep",
        "intervals": "95% percentile bootstrap over queries, 1000 resamples",
    }
