"""K-fold cross-validation: a hash deals training and validation queries into folds."""

from __future__ import annotations

import dataclasses

import numpy as np

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.utils.errors import input_error


def fold_sets(retrieval_set: RetrievalSet, folds: int, seed: int) -> list[RetrievalSet]:
    """Returns the set once for each fold, with that fold for validation and the rest for training.

    Every judged query of the training and validation splits is in one fold; fold sizes differ by
    one at most. Test queries, and queries without judgments, keep their split.

    Args:
        retrieval_set: The set with its own splits.
        folds: Number of folds; 0 or 1 returns the set with its own validation split.
        seed: Seed of the hash.

    Raises:
        InputError: There are fewer queries than folds.
    """
    if folds <= 1:
        return [retrieval_set]
    rows = np.concatenate([retrieval_set.queries_in(split) for split in ("train", "validation")])
    if len(rows) < folds:
        raise input_error(
            f"--folds={folds}",
            f"there are only {len(rows)} training and validation queries",
            "Use fewer folds",
        )
    hashes = hash_ids([retrieval_set.query_ids[row] for row in rows], f"folds {seed}")
    order = rows[np.argsort(hashes, kind="stable")]
    sets = []
    for fold in range(folds):
        splits = retrieval_set.splits.copy()
        splits[rows] = SPLITS.index("train")
        splits[order[fold::folds]] = SPLITS.index("validation")
        sets.append(dataclasses.replace(retrieval_set, splits=splits))
    return sets
