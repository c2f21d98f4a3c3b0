"""Sets that a trained model is evaluated on, which need not be the one of its training."""

from __future__ import annotations

import numpy as np
from absl import logging

from tf_smoothclir.data.folds import distinct_queries
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.opening import source_of
from tf_smoothclir.data.sources.source import SPLITS, Source
from tf_smoothclir.data.sources.splits import known_queries
from tf_smoothclir.settings.data import DataSettings
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.training.grades import highest_grade
from tf_smoothclir.utils.errors import InputError

_ENOUGH_QUERIES = 100
_FOLDS = 5
_NEAR_CHANCE = 0.05  # of what can be gained over it


def set_of_other_grades(source: Source, seed: int) -> RetrievalSet:
    """Loads a set whose grades are those that its judgments have."""
    return RetrievalSet.load(source, num_grades=max(1, highest_grade(source)) + 1, seed=seed)


def set_of_training(data: DataSettings, num_grades: int) -> RetrievalSet:
    """Loads the set that a model was trained on."""
    return RetrievalSet.load(source_of(data), num_grades=num_grades, seed=data.split_seed)


def warn_of_figures(
    data: DataSettings, num_grades: int, evaluated: RetrievalSet, *splits: str, is_own: bool = False
) -> None:
    """Warns of splits with few queries, or with texts of queries that a model was trained on."""
    for split in splits:
        warn_of_few_queries(evaluated, split)
    try:
        trained = evaluated if is_own else set_of_training(data, num_grades)
    except InputError:
        return  # the data are gone
    known = _texts_in(trained, np.flatnonzero(trained.splits == SPLITS.index("train")))
    for split in splits:
        texts = _texts_in(evaluated, evaluated.queries_in(split))
        same, alike = known_queries(known, texts)
        if same or alike:
            logging.warning(
                "The model was trained on the texts of %d of the %d %s queries, and on the words of"
                " %d more in another order, so the figures are too good.",
                same,
                len(texts),
                split,
                alike,
            )


def _texts_in(retrieval_set: RetrievalSet, rows: np.ndarray) -> list[str]:
    """The texts of some queries."""
    chosen = set(rows.tolist())
    queries = enumerate(retrieval_set.source.queries())
    return [text.text for row, text in queries if row in chosen]


def warn_of_few_queries(retrieval_set: RetrievalSet, split: str) -> None:
    """Warns where a mean over a split says little."""
    queries = len(retrieval_set.queries_in(split))
    if queries < _ENOUGH_QUERIES:
        logging.warning(
            "%s: only %d %s queries. A share of them is certain to about ±%.2f; from %d on, to"
            " ±0.10, from 400 on, to ±0.05. Look at the intervals, judge more queries,"
            " or measure on all judged ones by cross-validation (--folds).",
            retrieval_set.source.name,
            queries,
            split,
            min(0.98 / queries**0.5, 1),  # 1.96 standard errors of a share of a half
            _ENOUGH_QUERIES,
        )


def folds_of_small_set(retrieval_set: RetrievalSet, settings: RunSettings) -> int:
    """Folds where so few queries were drawn for a test that means of them say little; else 0."""
    is_drawn = retrieval_set.source.is_judged and retrieval_set.source.splits() is None
    is_alone = settings.training.distribution == "none" and not settings.training.init_from
    if not is_drawn or not is_alone or len(retrieval_set.queries_in("test")) >= _ENOUGH_QUERIES:
        return 0
    if distinct_queries(retrieval_set) < _FOLDS:  # last, as it reads all texts
        return 0
    logging.info(
        "So few queries are measured by cross-validation, in %d further trainings; --folds=0 leaves"
        " them out.",
        _FOLDS,
    )
    return _FOLDS


def warn_near_chance(result: dict, settings: RunSettings) -> None:
    """Warns where a finished training ranks hardly better than chance, and says what to do."""
    documents, measured = result["set"]["documents"], result["test"].get("full/MRR@10")
    by_chance = sum(1 / rank for rank in range(1, min(10, documents) + 1)) / documents
    if measured is None or measured - by_chance >= _NEAR_CHANCE * (1 - by_chance):
        return
    is_table_missing = settings.retrieval.families == (settings.retrieval.with_task,)
    others = "; try --preset=best or lexical" if is_table_missing else ""
    logging.warning(
        "The model ranks hardly better than chance: full/MRR@10 is %.3f on test queries, %.3f by"
        " chance. Check that the judgments name the right texts, that both languages are what"
        " --query_language and --document_language say, and judge more queries%s.",
        measured,
        by_chance,
        others,
    )
