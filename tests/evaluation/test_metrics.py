"""The metrics: last ranks, equal scores, queries that do not count."""

import math

import numpy as np
import pytest

from tests.cases import cases
from tf_smoothclir.evaluation import metrics
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.errors import InputError


def ranked(*lists):
    length = max(map(len, lists))
    return np.array([[*grades, *[0] * (length - len(grades))] for grades in lists], np.int32)


@cases("name, expected", ("MRR@10", 1 / 10), ("Recall@1", 1), ("Recall@10", 1), ("Recall@100", 1))
def test_a_document_behind_the_last_rank_that_counts_is_not_found(name, expected):
    last = int(name.partition("@")[2])
    for rank, value in ((last, expected), (last + 1, 0)):
        ranked = np.array([[0] * (rank - 1) + [2]])
        assert metrics.collection_metrics(ranked, np.array([[2, 0]]), 2)[name] == [value]


def test_minus_zero_ties_with_zero_and_nan_is_an_error():
    rest = np.array([0, 2]), np.array([0, 2]), [1, 0]
    np.testing.assert_array_equal(metrics.ranked_grades(np.float32([0.0, -0.0]), *rest), [[2, 0]])
    assert metrics.ranked_grades(*np.zeros((2, 0), np.int32), np.zeros(1, int), []).shape == (0, 0)
    with pytest.raises(InputError, match="scores: 1 of 2 are NaN"):
        metrics.ranked_grades(np.float32([math.nan, -1.0]), *rest)


def test_a_query_without_a_relevant_document_is_left_out_and_counted():
    per_query = metrics.per_query_metrics(ranked([2, 0], [1, 0, 0], [0, 0]), 3)
    of_mates = ("P_mr@1", "P_mr@5", "MRR_mr")
    assert metrics.counts(per_query) == {name: 1 if name in of_mates else 2 for name in METRICS}
    means = metrics.mean_metrics(per_query)
    assert means["P_mr@1"] == 1  # of the first query alone; the others are not zeros
    assert means["P_r@5"] == pytest.approx((1 / 5 + 1 / 5) / 2)
    for lists in ([[0, 0], [0]], [[]]):  # without a counted query all metrics are 0
        per_query = metrics.per_query_metrics(ranked(*lists), 3)
        assert metrics.mean_metrics(per_query) == dict.fromkeys(METRICS, 0.0)
        assert metrics.counts(per_query) == dict.fromkeys(METRICS, 0)


def test_pairs_are_counted_by_true_and_predicted_grade_also_of_grades_that_are_absent():
    found = metrics.confusion_matrix(np.array([0, 0, 2, 2]), np.array([0, 1, 1, 1]), 3)
    np.testing.assert_array_equal(found, [[1, 1, 0], [0, 0, 0], [0, 2, 0]])


@cases(
    "confusion, accuracy, macro, kappa",
    # Two grades: observed 3 / 4, by chance (3 * 2 + 1 * 2) / 16 = 1 / 2.
    ([[2, 1], [0, 1]], 3 / 4, (2 / 3 + 1) / 2, (3 / 4 - 1 / 2) / (1 - 1 / 2)),
    # One pair two grades off: 4. By chance, with 2, 1, 1 true and 1, 1, 2 predicted: one off
    # (2 + 1 + 2 + 1) / 4, two off 4 (4 + 1) / 4.
    ([[1, 0, 1], [0, 1, 0], [0, 0, 1]], 3 / 4, (1 / 2 + 1 + 1) / 3, 1 - 4 / (6 / 4 + 20 / 4)),
    ([[5, 0, 0], [0, 0, 0], [0, 0, 3]], 1, 1, 1),  # nobody has grade 1
    ([[4, 0], [0, 0]], 1, 1, 0),  # one grade is all there is
    ([[2, 2], [2, 2]], 1 / 2, 1 / 2, 0),
)
def test_how_well_grades_are_predicted(confusion, accuracy, macro, kappa):
    assert metrics.grade_metrics(np.array(confusion)) == {
        "accuracy": pytest.approx(accuracy),
        "macro_accuracy": pytest.approx(macro),
        "quadratic_kappa": pytest.approx(kappa),
    }


def test_measures_by_name_of_queries_without_an_answer_or_a_relevant_document():
    qrels = {"first": {"a": 2, "b": 0}, "second": {"a": 1, "b": 0}, "unanswered": {"a": 1}}
    qrels |= {"nothing relevant": {"a": 0}, "unjudged": {}}
    run = {"first": {"a": 2.0, "b": 1.0}, "second": {"a": 1.0, "b": 2.0}, "other": {"a": 1.0}}
    names = {"ours": "RR", "of mates": "RR(rel=2)"}
    found = metrics.named_measures(names, run, qrels, list(qrels))
    np.testing.assert_array_equal(found["ours"], [1, 1 / 2, 0, math.nan, math.nan])
    np.testing.assert_array_equal(found["of mates"], [1, *[math.nan] * 4])
    (found,) = metrics.named_measures({"ours": "RR"}, run, qrels, ["unjudged"]).values()
    np.testing.assert_array_equal(found, [math.nan])
    assert metrics.named_measures({}, run, qrels, list(qrels)) == {}
