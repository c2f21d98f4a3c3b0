"""Evaluation of a model on judged queries, those of training or any others."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.api.sets import GivenSet
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.evaluation.evaluate import Evaluation, evaluate_split
from tf_smoothclir.plugins import family
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.training.evaluated_sets import (
    set_of_other_grades,
    set_of_training,
    warn_of_figures,
)
from tf_smoothclir.utils.errors import input_error


def evaluate_on(
    models: ExportedModels, given: GivenSet, split: str, negatives: int, measures: Sequence[str]
) -> Evaluation:
    """Measures a model."""
    if split and split not in SPLITS:
        remedy = f"Give one of {', '.join(SPLITS)}"
        raise input_error(f"split={split!r}", "there is no such split", remedy)
    manifest = models.manifest
    trained_on, num_grades = manifest.data, len(manifest.thresholds) + 1
    source = given.source
    if source is None and given.directory is not None:
        source = source_of(
            DataSettings(
                data_dir=given.directory,
                query_language=trained_on.query_language,
                document_language=trained_on.document_language,
                split_seed=trained_on.split_seed,
            ).of_another_set()
        )
    if source is None:
        retrieval_set = set_of_training(trained_on, num_grades)
    else:
        retrieval_set = _loaded(source, given.splits, trained_on.split_seed)
        if not split:
            split = "test"
            everything = np.full_like(retrieval_set.splits, SPLITS.index(split))
            retrieval_set = dataclasses.replace(retrieval_set, splits=everything)
        warn_of_figures(trained_on, num_grades, retrieval_set, split)
    *_, last = models
    retriever = family(last).retriever_over(models, retrieval_set)
    measured = evaluate_split(
        retrieval_set, retriever, split, negatives=negatives, measures=measures
    )
    same_grades = num_grades == retrieval_set.num_grades
    return measured.graded(manifest.cut_points) if same_grades else measured


def _loaded(source: Source, splits: dict[str, str] | None, seed: int) -> RetrievalSet:
    """Loads a set whose grades are those that its judgments have."""
    loaded = set_of_other_grades(source, seed)
    if splits is None:
        return loaded
    places = {name: place for place, name in enumerate(SPLITS)}
    rows = [places.get(splits.get(id_, ""), -1) for id_ in loaded.query_ids]
    return dataclasses.replace(loaded, splits=np.array(rows, np.int8))
