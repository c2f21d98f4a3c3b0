"""A hybrid with shorter vectors: its fusion and its cut points, chosen again on validation."""

from __future__ import annotations

from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.training.retrievers import with_fusion
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import RunModels
from tf_smoothclir.training.run_report import calibrated_on
from tf_smoothclir.training.train import tokenized_set_of

_SPLIT = "validation"
_METRICS = ("full/MRR@10", "NDCG@5", "P_mr@1")


def refitted(run: RunDirectory, models: RunModels) -> tuple[RunModels, CutPoints]:
    """Fits a hybrid whose vectors are cut; logs its metrics on the validation queries."""
    settings = models.settings
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, (_SPLIT,))
    models = with_fusion(models, tokenized_set)
    retriever = models.retrievers(tokenized_set)[settings.retrieval.retriever]
    negatives = settings.training.negatives
    evaluation = evaluate_split(tokenized_set.retrieval_set, retriever, _SPLIT, negatives=negatives)
    logging.info(
        "With vectors of %d numbers: %s; %s queries: %s",
        settings.model.dim,
        models.fusion,
        _SPLIT,
        ", ".join(f"{name} {evaluation.metrics[name]:.4f}" for name in _METRICS),
    )
    return models, calibrated_on(tokenized_set, retriever, evaluation, negatives)
