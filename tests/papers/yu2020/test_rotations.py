"""Rotations: every judged query is a test query once."""

import numpy as np
import pytest

from tests.tuning.test_cross_validation import ids
from tf_smoothclir.papers.yu2020.rotations import rotated_sets
from tf_smoothclir.utils.errors import InputError


@pytest.mark.parametrize("folds", [3, 7])
def test_in_rotations_every_judged_query_is_a_test_query_and_a_validation_query_once(
    small_set, folds
):
    judged = {"q1", "q2", "q3", "q4", "q5", "q6", "q8"}
    sets = rotated_sets(small_set, folds, 13)
    for split in ("test", "validation"):
        parts = [ids(one, split) for one in sets]
        assert set().union(*parts) == judged
        assert sum(map(len, parts)) == len(judged)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for one in sets:
        assert ids(one, "train") == judged - ids(one, "validation") - ids(one, "test")
    # Of 5 folds, rotation r trains with r, r+1, r+2, validates with r+3 and tests r+4.
    for before, after in zip(sets, [*sets[1:], sets[0]]):
        assert ids(after, "validation") == ids(before, "test")


def test_rotations_depend_on_the_seed_and_need_three_folds_and_a_query_for_each(small_set):
    before = small_set.splits.copy()
    one, other = ([ids(s, "test") for s in rotated_sets(small_set, 5, seed)] for seed in (13, 14))
    assert one != other
    np.testing.assert_array_equal(small_set.splits, before)
    for folds in (1, 2, 8):
        with pytest.raises(InputError, match="Use 3 folds or more"):
            rotated_sets(small_set, folds, 13)
