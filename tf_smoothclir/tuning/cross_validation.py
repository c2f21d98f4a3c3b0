"""K-fold cross-validation: a hash deals queries into folds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.utils.errors import input_error


def fold_sets(retrieval_set: RetrievalSet, folds: int, seed: int) -> list[RetrievalSet]:
    """The set once for each fold, with that fold for validation and the rest for training.

    Every judged query of the training and validation splits is in one fold; fold sizes differ by
    one at most. Test queries, and queries without judgments, keep their split.
    """
    if folds <= 1:
        return [retrieval_set]
    rows = np.concatenate([retrieval_set.queries_in(split) for split in ("train", "validation")])
    if len(rows) < folds:
        reason = f"there are only {len(rows)} training and validation queries"
        raise input_error(f"--folds={folds}", reason, "Use fewer folds")
    sets = []
    for fold in deal(retrieval_set, rows, folds, seed):
        splits = retrieval_set.splits.copy()
        splits[rows] = SPLITS.index("train")
        splits[fold] = SPLITS.index("validation")
        sets.append(dataclasses.replace(retrieval_set, splits=splits))
    return sets


def deal(
    retrieval_set: RetrievalSet, rows: np.ndarray, folds: int, seed: int
) -> Iterator[np.ndarray]:
    """Yields the query rows of each fold, dealt by a hash of the ids."""
    hashes = hash_ids([retrieval_set.query_ids[row] for row in rows], f"folds {seed}")
    order = rows[np.argsort(hashes, kind="stable")]
    for fold in range(folds):
        yield order[fold::folds]
