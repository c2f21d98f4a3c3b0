"""Thresholds for the grades that the judgments of a set have, where nobody gives any."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.memory import MemorySource
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import Source
from tf_smoothclir.data.sources.toy_world import ToyWorld
from tf_smoothclir.settings.base import value_text
from tf_smoothclir.settings.presets import changed
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.run_directory import RunDirectory
from tf_smoothclir.utils.errors import input_error

_MOST_GRADES = 10
_FIRST_CUT, _LAST_CUT = 0.2, 0.7  # the paper's thresholds


def highest_grade(source: Source) -> int:
    """The highest grade of judgments of queries and documents that are there; 0 without any."""
    query_ids = {query.id for query in source.queries()}
    judged: dict[int, set[str]] = {}
    for query_id, document_id, grade in source.judgments():
        if query_id in query_ids:
            judged.setdefault(grade, set()).add(document_id)
    for grade in sorted(judged, reverse=True):  # as a rule, one of the first documents has it
        if any(document.id in judged[grade] for document in source.documents()):
            return grade
    return 0


def thresholds_for(highest_grade: int) -> tuple[float, ...]:
    """Thresholds for grades from 0 to the highest: the paper's, or spread like them."""
    if highest_grade >= _MOST_GRADES:
        raise input_error(
            "judgments",
            f"the highest grade is {highest_grade}",
            f"Give grades from 0 to at most {_MOST_GRADES - 1}, such as 0, 1 and 2, or the"
            " thresholds between all of them",
        )
    if highest_grade <= 1:
        return (round((_FIRST_CUT + _LAST_CUT) / 2, 4),)
    return tuple(np.linspace(_FIRST_CUT, _LAST_CUT, highest_grade).round(4).tolist())


def needs_table_alone(source: Source, preset: str, given: Collection[str]) -> bool:
    """Whether --preset=lexical is right: nobody judged the set, nobody said what is trained."""
    if source.is_judged or preset or "retriever" in given:
        return False
    logging.info("Without judgments there is the translation table alone: --preset=lexical")
    return True


def with_grades_of_set(
    settings: RunSettings,
    output_dir: str | Path,
    *,
    overwrite: bool = False,
    in_memory: MemorySource | None = None,
) -> RunSettings:
    """Settings with as many thresholds as the grades of the set need."""
    # A run that is there, with the thresholds that this function gives, keeps them: its set
    # need not be there any more.
    run = RunDirectory(Path(output_dir))
    if run.config.is_file() and not overwrite:
        thresholds = run.settings().model.thresholds
        if thresholds != thresholds_for(len(thresholds)):
            return settings
    else:
        source = source_of(settings.data, in_memory)
        if isinstance(source, ToyWorld) or not source.is_judged:
            return settings
        thresholds = thresholds_for(highest_grade(source))
    if len(thresholds) == len(settings.model.thresholds):
        return settings
    values = value_text(thresholds)
    logging.info("Grades from 0 to %d in the judgments: --thresholds=%s", len(thresholds), values)
    return changed(settings, {"thresholds": thresholds})
