"""The seven metrics: hand arithmetic, the plain oracle, ties, queries that do not count."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import metrics as oracle
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.evaluation.metrics import (
    RULES,
    confusion_matrix,
    counts,
    grade_metrics,
    mean_metrics,
    per_query_metrics,
    ranked_grades,
)
from tf_smoothclir.settings.training import METRICS

SETTINGS = settings(deadline=None, max_examples=60, derandomize=True)
LOG3 = math.log2(3)


def ranked(*lists):
    length = max(map(len, lists))
    return np.array([[*grades, *[-1] * (length - len(grades))] for grades in lists], np.int32)


def single(grades, num_grades=3):
    return {name: v[0] for name, v in per_query_metrics(ranked(grades), num_grades).items()}


def same(values):
    return pytest.approx(values, rel=1e-6, nan_ok=True)


def test_by_hand_three_grades():
    # Ranks:  1  2  3  4  5  6
    grades = [0, 1, 2, 0, 0, 1]
    assert single(grades) == same(
        {
            "P_mr@1": 0,
            "P_mr@5": 1,
            "P_r@5": 2 / 5,
            # Gains 1 and 2 at ranks 2 and 3; the best order has 2, 1, 1 at ranks 1, 2, 3.
            "NDCG@5": (1 / LOG3 + 2 / 2) / (2 + 1 / LOG3 + 1 / 2),
            "MAP": (1 / 2 + 2 / 3 + 3 / 6) / 3,
            "MRR_mr": 1 / 3,
            "MRR_r": 1 / 2,
        }
    )


def test_gain_is_linear_in_the_grade():
    # With the gain 2^grade - 1 this would be (1 + 3 / log2(3)) / (3 + 1 / log2(3)) = 0.797.
    assert single([1, 2])["NDCG@5"] == same((1 + 2 / LOG3) / (2 + 1 / LOG3))


def test_the_sixth_rank_is_below_every_cut():
    found = single([0, 0, 0, 0, 0, 2])
    assert {n: found[n] for n in ("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5")} == same(
        dict.fromkeys(("P_mr@1", "P_mr@5", "P_r@5", "NDCG@5"), 0)
    )
    assert found["MAP"] == same(1 / 6)


def test_precision_at_5_of_a_shorter_list_is_divided_by_five():
    assert single([2, 1])["P_r@5"] == same(2 / 5)


def test_single_document():
    everything_right = dict.fromkeys(METRICS, 1) | {"P_r@5": 1 / 5}
    assert single([2]) == same(everything_right)
    assert single([0]) == same(dict.fromkeys(METRICS, math.nan))


def test_highest_grade_follows_the_number_of_grades():
    assert single([1, 0], 2) == same(dict.fromkeys(METRICS, 1) | {"P_r@5": 1 / 5})
    assert single([2, 3], 4)["MRR_mr"] == same(1 / 2)
    assert math.isnan(single([2, 1], 4)["MRR_mr"])


@pytest.mark.parametrize("num_grades", [2, 3, 4])
@SETTINGS
@given(data=st.data())
def test_agrees_with_the_oracle_on_ragged_lists_with_ties(num_grades, data):
    # Three scores only, so that nearly every list has ties.
    pair = st.tuples(st.integers(0, num_grades - 1), st.sampled_from([-0.5, 0.0, 0.25]))
    lists = data.draw(st.lists(st.lists(pair, min_size=1, max_size=9), min_size=1, max_size=4))
    grades = [grade for pairs in lists for grade, _ in pairs]
    scores = [score for pairs in lists for _, score in pairs]
    ties = data.draw(st.permutations(range(len(grades))))
    offsets = np.cumsum([0, *map(len, lists)])
    found = per_query_metrics(
        ranked_grades(np.float32(scores), np.array(grades), offsets, np.array(ties)), num_grades
    )
    for i, (begin, end) in enumerate(itertools.pairwise(offsets)):
        order = oracle.ranking(scores[begin:end], grades[begin:end], ties[begin:end])
        expected = oracle.seven_metrics(order, num_grades)
        for name in METRICS:
            value = math.nan if expected[name] is None else expected[name]
            assert found[name][i] == same(value), name


# ---- ties -----------------------------------------------------------------------------------


def documents(count, seed):
    """Returns tie_order and grades of a list in file order; the mate comes first."""
    ties = hash_ids([f"{seed}-{i}" for i in range(count)])
    return ties, np.array([2] + [0] * (count - 1))


def test_ties_do_not_depend_on_the_order_of_the_pairs():
    ties, grades = documents(10, "x")
    scores = np.float32([0.5] * 4 + [0.25] * 6)
    generator = np.random.default_rng(3)
    expected = ranked_grades(scores, grades, np.array([0, 10]), ties)
    for _ in range(10):
        p = generator.permutation(10)
        again = ranked_grades(scores[p], grades[p], np.array([0, 10]), ties[p])
        np.testing.assert_array_equal(again, expected)


@pytest.mark.parametrize("mate_place", [0, 9])
def test_equal_scores_rank_the_mate_by_chance_wherever_it_is_in_the_file(mate_place):
    lists, length = 2000, 10
    grades = np.zeros((lists, length), int)
    grades[:, mate_place] = 2
    ties = hash_ids([f"d{i}" for i in range(lists * length)])
    offsets = np.arange(0, lists * length + 1, length)
    order = ranked_grades(np.zeros(lists * length), grades.ravel(), offsets, ties)
    means = mean_metrics(per_query_metrics(order, 3))
    # A constant scorer: first in 1 of 10, in the first five in 1 of 2. Four standard errors.
    assert means["P_mr@1"] == pytest.approx(1 / 10, abs=4 * math.sqrt(0.1 * 0.9 / lists))
    assert means["P_mr@5"] == pytest.approx(1 / 2, abs=4 * math.sqrt(0.5 * 0.5 / lists))
    harmonic = sum(1 / rank for rank in range(1, length + 1)) / length
    assert means["MRR_mr"] == pytest.approx(harmonic, abs=4 * 0.3 / math.sqrt(lists))


def test_minus_zero_ties_with_zero():
    found = ranked_grades(np.float32([0.0, -0.0]), np.array([0, 2]), np.array([0, 2]), [1, 0])
    np.testing.assert_array_equal(found, [[2, 0]])


def test_a_nan_score_comes_last():
    found = ranked_grades(np.float32([math.nan, -1.0]), np.array([2, 0]), np.array([0, 2]), [0, 1])
    np.testing.assert_array_equal(found, [[0, 2]])


# ---- queries that do not count --------------------------------------------------------------


def test_a_query_without_a_relevant_document_is_left_out_and_counted():
    per_query = per_query_metrics(ranked([2, 0], [1, 0, 0], [0, 0]), 3)
    assert counts(per_query) == {
        name: 1 if name in ("P_mr@1", "P_mr@5", "MRR_mr") else 2 for name in METRICS
    }
    means = mean_metrics(per_query)
    assert means["P_mr@1"] == 1  # of the first query alone; the others are not zeros
    assert means["P_r@5"] == same((1 / 5 + 1 / 5) / 2)


@pytest.mark.parametrize("lists", [[[0, 0], [0]], [[]]])
def test_without_a_counted_query_all_metrics_are_zero(lists):
    per_query = per_query_metrics(ranked(*lists), 3)
    assert mean_metrics(per_query) == dict.fromkeys(METRICS, 0.0)
    assert counts(per_query) == dict.fromkeys(METRICS, 0)


def test_padding_is_minus_one_and_lists_keep_their_order():
    order = ranked_grades(
        np.float32([0.1, 0.9, 0.5, 0.2]), np.array([0, 1, 2, 0]), np.array([0, 1, 1, 4]), range(4)
    )
    np.testing.assert_array_equal(order, [[0, -1, -1], [-1, -1, -1], [1, 2, 0]])


def test_pairs_are_counted_by_true_and_predicted_grade():
    found = confusion_matrix(np.array([0, 0, 2, 2]), np.array([0, 1, 1, 1]), 3)
    np.testing.assert_array_equal(found, [[1, 1, 0], [0, 0, 0], [0, 2, 0]])


@pytest.mark.parametrize(
    ("confusion", "accuracy", "macro", "kappa"),
    [
        # Two grades: observed 3 / 4, by chance (3 * 2 + 1 * 2) / 16 = 1 / 2.
        ([[2, 1], [0, 1]], 3 / 4, (2 / 3 + 1) / 2, (3 / 4 - 1 / 2) / (1 - 1 / 2)),
        # One pair two grades off: 4. By chance, with 2, 1, 1 true and 1, 1, 2 predicted: one off
        # (2 + 1 + 2 + 1) / 4, two off 4 (4 + 1) / 4.
        ([[1, 0, 1], [0, 1, 0], [0, 0, 1]], 3 / 4, (1 / 2 + 1 + 1) / 3, 1 - 4 / (6 / 4 + 20 / 4)),
        ([[5, 0, 0], [0, 0, 0], [0, 0, 3]], 1, 1, 1),  # nobody has grade 1
        ([[4, 0], [0, 0]], 1, 1, 0),  # one grade is all there is
        ([[2, 2], [2, 2]], 1 / 2, 1 / 2, 0),
    ],
)
def test_how_well_grades_are_predicted(confusion, accuracy, macro, kappa):
    assert grade_metrics(np.array(confusion)) == {
        "accuracy": pytest.approx(accuracy),
        "macro_accuracy": pytest.approx(macro),
        "quadratic_kappa": pytest.approx(kappa),
    }


def test_rules_name_gain_ties_and_queries_left_out():
    assert "linear" in RULES["gain"]
    assert "hash of the document id" in RULES["ties"]
    assert "left out" in RULES["left_out"]
