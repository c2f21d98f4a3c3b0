"""Folds of cross-validation: a hash deals queries into them."""

import dataclasses
from collections.abc import Iterator

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.sources.splits import drawn_places
from tf_smoothclir.utils.errors import input_error


def fold_sets(retrieval_set: RetrievalSet, folds: int, seed: int) -> list[RetrievalSet]:
    """The set once for each fold, with that fold for validation and the rest for training."""
    # Every judged query of these two splits is in one fold, queries of one text in the same; other
    # queries keep their split.
    if folds <= 1:
        return [retrieval_set]
    parts = [retrieval_set.queries_in(split) for split in ("train", "validation")]
    rows = np.sort(np.concatenate(parts))
    places = _places(retrieval_set, rows, seed)
    if (places_dealt := places.max() + 1) < folds:
        reason = f"there are only {places_dealt} training and validation queries"
        raise input_error(f"--folds={folds}", reason, "Use fewer folds")
    return [
        _with_splits(retrieval_set, retrieval_set.splits, train=rows, validation=fold)
        for fold in _deal(rows, places, folds)
    ]


def distinct_queries(retrieval_set: RetrievalSet) -> int:
    """How many texts the judged queries of a set have: at most so many folds can be dealt."""
    return int(_places(retrieval_set, np.unique(retrieval_set.query_rows), 0).max(initial=-1)) + 1


def check_folds(folds: int, queries: int, flag: str = "--folds") -> None:
    """Checks that distinct judged queries make folds for training, validation and test."""
    if not 3 <= folds <= queries:
        reason = "training, validation and test need a fold each"
        if folds >= 3:
            reason = f"the judged queries have {queries} different texts, and each fold needs one"
        most = f"3 to {queries} folds, or " if queries >= 3 else ""
        raise input_error(f"{flag}={folds}", reason, f"Use {most}0 for the splits of the set")


def rotated_sets(retrieval_set: RetrievalSet, folds: int, seed: int) -> list[RetrievalSet]:
    """The set once for each fold: it tests, the one before it validates, all others train."""
    # For five folds 3:1:1, as in Yu and Allan 2020, section 3. The splits of the set have no
    # effect.
    rows = np.unique(retrieval_set.query_rows)
    places = _places(retrieval_set, rows, seed)
    check_folds(folds, places.max(initial=-1) + 1)
    dealt = list(_deal(rows, places, folds))
    nowhere = np.full_like(retrieval_set.splits, -1)
    return [
        _with_splits(
            retrieval_set, nowhere, train=rows, validation=dealt[fold - 2], test=dealt[fold - 1]
        )
        for fold in range(folds)
    ]


def _with_splits(retrieval_set: RetrievalSet, splits: np.ndarray, **rows: np.ndarray):
    """The set with other splits of some query rows, the last of which count."""
    splits = splits.copy()
    for split, of_split in rows.items():
        splits[of_split] = SPLITS.index(split)
    return dataclasses.replace(retrieval_set, splits=splits)


def _deal(rows: np.ndarray, places: np.ndarray, folds: int) -> Iterator[np.ndarray]:
    """Yields the query rows of each fold, dealt by their places; the same texts to one."""
    for fold in range(folds):
        in_fold = places % folds == fold
        yield rows[in_fold][np.argsort(places[in_fold], kind="stable")]


def _places(retrieval_set: RetrievalSet, rows: np.ndarray, seed: int) -> np.ndarray:
    """`[rows]` int64, of query rows in ascending order, where they stand when they are dealt."""
    dealt = set(rows.tolist())
    queries = [text for row, text in enumerate(retrieval_set.source.queries()) if row in dealt]
    return drawn_places(queries, f"folds {seed}")
