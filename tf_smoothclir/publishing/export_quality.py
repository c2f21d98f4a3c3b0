"""Quality of cut vectors: what they need is chosen again, and metrics are logged."""

from __future__ import annotations

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.calibration import calibrated
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet, RunModels
from tf_smoothclir.training.run_report import hits_of_short_queries

_SPLIT = "validation"
_METRICS = ("full/MRR@10", "NDCG@5", "P_mr@1")


def refitted(run: RunDirectory, models: RunModels) -> tuple[RunModels, CutPoints]:
    """Chooses anew what cut vectors need; logs the metrics on the validation queries."""
    settings = models.settings
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, (_SPLIT,))
    over, name = ModelsOverSet(settings, tokenized_set, models), settings.retrieval.retriever
    models = RunModels(settings, over.models)
    negatives = settings.training.negatives
    evaluation = evaluate_split(
        over.retrieval_set, over.retrievers[name], _SPLIT, negatives=negatives
    )
    logging.info(
        "With vectors of %d numbers: %s; %s queries: %s",
        settings.model.dim,
        models[name],
        _SPLIT,
        ", ".join(f"{metric} {evaluation.metrics[metric]:.4f}" for metric in _METRICS),
    )
    return models, calibrated(evaluation, hits_of_short_queries(over)[name])
