"""Cut points between grades: no others do better on the documents that they are found on."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tf_smoothclir.evaluation.calibration import best_cut_points, calibrated
from tf_smoothclir.evaluation.evaluate import Evaluation, Hits
from tf_smoothclir.losses.grades import predicted_grades
from tf_smoothclir.protocols.cut_points import CutPoints


def macro_accuracy(scores_by_grade, cut_points):
    """The mean over grades of the share predicted right, one score at a time."""
    shares = [
        np.mean([sum(score > cut for cut in cut_points) == grade for score in own])
        for grade, own in enumerate(scores_by_grade)
        if len(own)
    ]
    return np.mean(shares)


def best_by_trying_all(scores_by_grade):
    scores = sorted({score for own in scores_by_grade for score in own})
    places = [scores[0] - 1, *scores]  # a cut point on a score leaves it below
    cuts = itertools.combinations_with_replacement(places, len(scores_by_grade) - 1)
    return max(macro_accuracy(scores_by_grade, cut) for cut in cuts)


@pytest.mark.parametrize(
    ("scores_by_grade", "expected"),
    [
        ([[0.0, 0.25], [0.5], [1.0, 2.0]], (0.375, 0.75)),  # half way between separable grades
        # However rare a grade, at 0.5: (90 / 100 + 1 / 1) / 2. At 1: (100 / 100 + 0 / 1) / 2,
        # though 100 of 101 are right.
        ([[0.0] * 90 + [1.0] * 10, [1.0]], (0.5,)),
        # A grade that is better never predicted has no room.
        ([[0.0], [], [1.0]], (0.5, 0.5)),  # nobody has grade 1
        ([[0.0, 1.0], [-1.0, 3.0], [2.0]], (1.5, 1.5)),  # those of grade 1 score anyhow
    ],
)
def test_cut_points_by_hand(scores_by_grade, expected):
    assert best_cut_points(scores_by_grade) == expected


ABOVE_1 = np.nextafter(np.float32(1), np.float32(2))


@pytest.mark.parametrize(
    ("scores_by_grade", "grades"),
    [
        ([[1.0, ABOVE_1], []], [0, 0]),  # only the lowest grade occurs
        ([[], [1.0, ABOVE_1]], [1, 1]),  # only the highest one
        ([[1.0], [ABOVE_1]], [0, 1]),  # between neighbours in float32 there is no middle
    ],
)
def test_cut_points_beyond_all_scores_and_without_a_middle(scores_by_grade, grades):
    (found,) = best_cut_points(scores_by_grade)
    assert predicted_grades(np.float32([1, ABOVE_1]), (found,)).numpy().tolist() == grades


SCORES = st.integers(-4, 4).map(lambda number: number / 4)


@given(st.lists(st.lists(SCORES, max_size=6), min_size=2, max_size=4).filter(any))
def test_no_other_cut_points_are_better(scores_by_grade):
    found = best_cut_points(scores_by_grade)
    assert len(found) == len(scores_by_grade) - 1
    assert list(found) == sorted(found)
    expected = best_by_trying_all(scores_by_grade)
    assert macro_accuracy(scores_by_grade, found) == pytest.approx(expected)


def test_each_kind_of_score_has_cut_points_of_its_own():
    lists = [np.array([0.0]), np.array([1.0])]
    # Shares of the first hit's score: 1 and 1 of grade 1, 1 / 2 and 1 / 4 of grade 0.
    hits = Hits(np.float32([[4, 2], [8, 2]]), np.array([[1, 0], [1, 0]]))
    found = calibrated(Evaluation({}, {}, {}, lists, hits), [np.array([2.0]), np.array([4.0])])
    assert found == CutPoints(scores=(0.5,), shares=(0.75,), alone=(3.0,))
    ranks_no_collection = calibrated(Evaluation({}, {}, {}, lists))
    assert ranks_no_collection == CutPoints(scores=(0.5,), shares=(), alone=(0.5,))
