"""Evaluation of a model on judged queries, those of training or any others."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from tf_smoothclir.api.sets import Data, given_set
from tf_smoothclir.data.sources.memory import Tokenizer
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.evaluation.evaluate import Evaluation, evaluate_split
from tf_smoothclir.plugins import family
from tf_smoothclir.publishing.exported_models import ExportedModels
from tf_smoothclir.settings.data import LANGUAGES, DataSettings
from tf_smoothclir.training.evaluated_sets import (
    set_of_other_grades,
    set_of_training,
    warn_of_figures,
)
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.paths import local_path


def evaluate_on(
    models: ExportedModels,
    data: Data | None,
    parts: Mapping[str, Any],
    tokenizer: Tokenizer | None,
    split: str,
    **options: Any,
) -> Evaluation:
    """Measures a model on a set, which is read as that of training was; by default on that one."""
    if split not in SPLITS:
        remedy = f"Give one of {', '.join(SPLITS)}"
        raise input_error(f"split={split!r}", "there is no such split", remedy)
    manifest = models.manifest
    trained_on, num_grades = manifest.data, len(manifest.thresholds) + 1
    if data is None and all(part is None for part in parts.values()):
        retrieval_set = set_of_training(trained_on, num_grades)
    else:
        names = *LANGUAGES, "split_seed", "columns", "max_skipped"
        settings = DataSettings(**{name: getattr(trained_on, name) for name in names})
        settings = settings.of_another_set()
        if isinstance(data, (str, os.PathLike)):
            settings = dataclasses.replace(settings, data_dir=os.path.abspath(local_path(data)))
        source = given_set("evaluate", data, parts, settings, tokenizer) or source_of(settings)
        retrieval_set = set_of_other_grades(source, trained_on.split_seed)
        if data is None:
            split = "test"
            everything = np.full_like(retrieval_set.splits, SPLITS.index(split))
            retrieval_set = dataclasses.replace(retrieval_set, splits=everything)
        warn_of_figures(trained_on, num_grades, retrieval_set, split)
    *_, last = models
    retriever = family(last).retriever_over(models, retrieval_set)
    measured = evaluate_split(retrieval_set, retriever, split, **options)
    same_grades = num_grades == retrieval_set.num_grades
    return measured.graded(manifest.cut_points) if same_grades else measured
