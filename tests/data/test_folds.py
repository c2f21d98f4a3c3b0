"""Folds: a reproducible partition of the training and validation queries."""

import dataclasses

import numpy as np
import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.folds import fold_sets
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.utils.errors import InputError


def ids(retrieval_set, split):
    return {retrieval_set.query_ids[row] for row in retrieval_set.queries_in(split)}


@pytest.mark.parametrize("folds", [2, 3, 5])
def test_folds_partition_the_queries_but_not_the_test_split(small_set, folds):
    learnt = {"q1", "q2", "q3", "q4", "q8"}  # training and validation, with a judgment
    before = small_set.splits.copy()
    sets = fold_sets(small_set, folds, 13)
    held_out = [ids(fold, "validation") for fold in sets]
    assert set().union(*held_out) == learnt
    assert sum(map(len, held_out)) == len(learnt)
    assert max(map(len, held_out)) - min(map(len, held_out)) <= 1
    for fold, validation in zip(sets, held_out):
        assert ids(fold, "train") == learnt - validation
        assert ids(fold, "test") == ids(small_set, "test")
    np.testing.assert_array_equal(small_set.splits, before)
    assert fold_sets(small_set, 0, 13) == fold_sets(small_set, 1, 13) == [small_set]
    with pytest.raises(InputError, match="only 5 training and validation queries"):
        fold_sets(small_set, 6, 13)


def test_queries_of_the_same_words_are_in_one_fold(small_set):
    texts = {"q1": "Wind mill", "q2": "sea", "q3": "wind  MILL", "q4": "tower", "q8": "wind mill"}
    queries = [(id_, texts.get(id_, id_)) for id_ in small_set.query_ids]
    same = RetrievalSet.load(SmallWorld(queries=queries))
    same = dataclasses.replace(same, splits=small_set.splits)
    folds = [ids(fold, "validation") for fold in fold_sets(same, 3, 13)]
    assert sorted(map(sorted, folds)) == [["q1", "q3", "q8"], ["q2"], ["q4"]]
    with pytest.raises(InputError, match="only 3 training and validation queries"):
        fold_sets(same, 4, 13)


def test_folds_depend_on_ids_and_seed_not_on_the_order_of_the_file(small_set):
    queries = [(id_, "") for id_ in reversed(small_set.query_ids)]
    turned = RetrievalSet.load(SmallWorld(queries=queries))
    first, again, other = (
        [ids(fold, "validation") for fold in fold_sets(given, 5, seed)]
        for given, seed in ((small_set, 13), (turned, 13), (small_set, 14))
    )
    assert first == again != other
