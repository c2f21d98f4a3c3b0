"""Grades of scores and of hits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tf_smoothclir.losses.grades import hit_grades, hit_shares, predicted_grades
from tf_smoothclir.protocols.cut_points import CutPoints

# Few numbers, so that scores lie on cut points.
SCORES = st.sampled_from([-3.0, -1.0, -0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 2.0**100])


def test_a_score_on_a_cut_point_has_the_lower_grade():
    found = predicted_grades(np.float32([0.1, 0.2, 0.3, 0.7, 0.8]), (0.2, 0.7))
    assert found.numpy().tolist() == [0, 0, 1, 1, 2]


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        # By their scores 2, 2, 2, 1; by their shares of 8, which are 1, 7 / 8, 1 / 2, 1 / 4: 2, 2,
        # 1, 0.
        ([8, 7, 4, 2], [2, 2, 1, 0]),
        # The best of nothing good: by their scores 1, 1, 0, 0; by their shares 2, 2, 1, 0.
        ([2, 1.8, 1.0, 0.5], [1, 1, 0, 0]),
        ([0, 0, -1, -2], [0, 0, 0, 0]),
        ([-1, -1, -2, -4], [0, 0, 0, 0]),  # a share of a negative score says nothing
    ],
)
def test_a_hit_has_the_lower_grade_of_its_score_and_its_share(scores, expected):
    found = hit_grades(np.float32([scores, scores]), (1.0, 3.0), (0.3, 0.8))
    assert found.numpy().tolist() == [expected, expected]


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(0, 3), st.integers(0, 6)), elements=SCORES),
    st.lists(SCORES, min_size=1, max_size=4).map(sorted),
    st.lists(SCORES, max_size=4).map(sorted),
)
@settings(deadline=None, max_examples=60, derandomize=True)
def test_cut_points_give_the_grades_of_the_graph(scores, of_scores, of_shares):
    scores = -np.sort(-scores, axis=-1)
    cut_points = CutPoints(tuple(of_scores), tuple(of_shares), ())
    expected = hit_grades(scores, of_scores, of_shares).numpy()
    np.testing.assert_array_equal(cut_points.of_hits(scores), expected)


def test_without_cut_points_of_shares_the_score_decides():
    assert hit_grades(np.float32([8, 2, 1]), (1.0, 3.0), ()).numpy().tolist() == [2, 1, 0]


@pytest.mark.parametrize("scores", [np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)])
def test_no_hits(scores):
    assert hit_grades(scores, (1.0,), (0.5,)).shape == scores.shape
    assert hit_shares(scores).shape == scores.shape
