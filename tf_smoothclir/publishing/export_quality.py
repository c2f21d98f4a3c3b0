"""Quality of smaller exports: metrics with narrow tables, and with cut vectors."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.publishing.exported_tables import ExportedTables
from tf_smoothclir.publishing.manifest import TableQuality
from tf_smoothclir.training.run_data import tokenized_set_of
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.training.run_models import ModelsOverSet, RunModels
from tf_smoothclir.training.run_report import calibrated_on, hits_of_short_queries

_SPLIT, _TOWERS = "validation", "dense"
_METRICS = ("full/MRR@10", "NDCG@5", "P_mr@1")


def measured_quality(
    run: RunDirectory, models: RunModels, tables: Mapping[str, ExportedTables]
) -> TableQuality:
    """Ranks the validation queries of a run with exact and with narrow tables."""
    settings = models.settings
    tokenized_set = tokenized_set_of(source_of(settings.data), settings, run, (_SPLIT,))
    exact_vectors, exact = _ranked(models, tokenized_set)
    with contextlib.ExitStack() as stack:
        for role in ROLES:
            stack.enter_context(tables[role].read_by(getattr(models[_TOWERS], f"{role}_tower")))
        vectors, narrow = _ranked(models, tokenized_set)
    distances = [
        np.linalg.norm(getattr(vectors, side) - getattr(exact_vectors, side), axis=1).max()
        for side in ("queries", "documents")
    ]
    found = TableQuality(tables["query"].type, float(max(distances)), exact, narrow)
    logging.info(
        "%s tables, %s queries: %s; no vector moves by more than %.4f",
        found.type,
        _SPLIT,
        ", ".join(f"{name} {narrow[name]:.4f} instead of {exact[name]:.4f}" for name in narrow),
        found.largest_distance,
    )
    return found


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
    of_short = hits_of_short_queries(over)[name]
    return models, calibrated_on(over, name, evaluation, of_short)


def _ranked(models: RunModels, tokenized_set: TokenizedSet):
    """The dense retriever, and the metrics of what the run ranks with."""
    retrievers = models.retrievers(tokenized_set)
    evaluation = evaluate_split(
        tokenized_set.retrieval_set,
        retrievers[models.settings.retrieval.retriever],
        _SPLIT,
        negatives=models.settings.training.negatives,
    )
    return retrievers[_TOWERS], {name: evaluation.metrics[name] for name in _METRICS}
