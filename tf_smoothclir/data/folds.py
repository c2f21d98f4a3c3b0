"""Folds of cross-validation: a hash deals queries into them."""

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
    return [
        _with_splits(retrieval_set, retrieval_set.splits, {"train": rows, "validation": fold})
        for fold in _deal(retrieval_set, rows, folds, seed)
    ]


def check_folds(folds: int, queries: int, flag: str = "--folds") -> None:
    """Checks that judged queries make folds for training, validation and test."""
    if not 3 <= folds <= queries:
        raise input_error(
            f"{flag}={folds}",
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
    dealt = list(_deal(retrieval_set, rows, folds, seed))
    nowhere = np.full_like(retrieval_set.splits, -1)
    return [
        _with_splits(
            retrieval_set,
            nowhere,
            {"train": rows, "validation": dealt[number - 2], "test": dealt[number - 1]},
        )
        for number in range(folds)
    ]


def _with_splits(
    retrieval_set: RetrievalSet, splits: np.ndarray, rows: dict[str, np.ndarray]
) -> RetrievalSet:
    """The set with other splits of some query rows, the last of which count."""
    splits = splits.copy()
    for split, own in rows.items():
        splits[own] = SPLITS.index(split)
    return dataclasses.replace(retrieval_set, splits=splits)


def _deal(
    retrieval_set: RetrievalSet, rows: np.ndarray, folds: int, seed: int
) -> Iterator[np.ndarray]:
    """Yields the query rows of each fold, dealt by a hash of the ids."""
    hashes = hash_ids([retrieval_set.query_ids[row] for row in rows], f"folds {seed}")
    order = rows[np.argsort(hashes, kind="stable")]
    for fold in range(folds):
        yield order[fold::folds]
