"""Cross-validation in which every query is a test query once, as in Yu and Allan 2020."""

from __future__ import annotations

import dataclasses

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.tuning.cross_validation import deal
from tf_smoothclir.utils.errors import input_error


def check_folds(folds: int, queries: int) -> None:
    """Checks that judged queries make folds for training, validation and test."""
    if not 3 <= folds <= queries:
        raise input_error(
            f"--matching_folds={folds}",
            f"there are {queries} judged queries, and each fold needs one",
            "Use 3 folds or more, or 0 for the splits of the set",
        )


def rotated_sets(retrieval_set: RetrievalSet, folds: int, seed: int) -> list[RetrievalSet]:
    """The set once for each fold, so that every judged query is a test query once.

    One fold is for testing, the one before it for validation, all others for training: for five
    folds 3:1:1, as in Yu and Allan 2020, section 3. The splits of the set have no effect. Fold
    sizes differ by one at most.
    """
    rows = np.unique(retrieval_set.query_rows)
    check_folds(folds, len(rows))
    dealt = list(deal(retrieval_set, rows, folds, seed))
    sets = []
    for rotation in range(folds):
        splits = np.full_like(retrieval_set.splits, -1)
        splits[rows] = SPLITS.index("train")
        splits[dealt[(rotation + folds - 2) % folds]] = SPLITS.index("validation")
        splits[dealt[(rotation + folds - 1) % folds]] = SPLITS.index("test")
        sets.append(dataclasses.replace(retrieval_set, splits=splits))
    return sets
