"""Metrics of anybody's rankings, by hand, and the same as Keras metrics."""

import math

import numpy as np
import pandas as pd
import pytest
import tensorflow as tf

from tf_smoothclir.api import metrics
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.protocols.text_search import SearchHit
from tf_smoothclir.utils.errors import InputError

LOG3 = math.log2(3)
JUDGMENTS = [
    ("q1", "a", 2),
    ("q1", "b", 1),
    ("q1", "c", 0),
    ("q2", "a", 1),
    ("q3", "a", 1),  # not ranked: counts as 0
    ("q4", "a", 0),  # nothing relevant: left out
]
RANKINGS = {"q1": ["x", "b", "a"], "q2": ["a"], "q4": ["a"], "q5": ["a"]}


@pytest.mark.parametrize(
    ("metric", "cut", "expected"),
    [
        # q1 has grades 0, 1, 2; the best order is 2, 1.
        (metrics.ndcg, {}, ((1 / LOG3 + 2 / 2) / (2 + 1 / LOG3) + 1 + 0) / 3),
        (metrics.ndcg, {"k": 2}, ((1 / LOG3) / (2 + 1 / LOG3) + 1 + 0) / 3),
        (metrics.precision, {"k": 2}, (1 / 2 + 1 / 2 + 0) / 3),
        (metrics.recall, {"k": 2}, (1 / 2 + 1 + 0) / 3),
        (metrics.mrr, {}, (1 / 2 + 1 + 0) / 3),
        (metrics.mrr, {"k": 1}, (0 + 1 + 0) / 3),
        (metrics.mean_average_precision, {}, ((1 / 2 + 2 / 3) / 2 + 1 + 0) / 3),
    ],
)
def test_by_hand(metric, cut, expected):
    assert metric(RANKINGS, JUDGMENTS, **cut) == pytest.approx(expected)


def test_scores_are_sorted_and_ties_do_not_favour_the_first():
    ids = sorted("abcdef", key=lambda id_: hash_ids([id_])[0])
    scores = dict.fromkeys("abcdef", 0.5)
    for place, id_ in enumerate(ids):
        assert metrics.mrr({"q": scores}, [("q", id_, 1)]) == pytest.approx(1 / (place + 1))
    assert metrics.mrr({"q": {**scores, "z": 0.6}}, [("q", "z", 1)]) == 1


@pytest.mark.parametrize(
    "ranking",
    [
        [SearchHit(1, 0.9, 0, "x", "", ""), SearchHit(2, 0.5, 0, "7", "", "")],
        [("7", 0.5), ["x", 0.9]],
        ["x", 7.0],
        ["x", np.int64(7)],
        {"x": 1.0, 7.0: float("-inf")},
        np.array([["x", 0.9], [7.0, 0.1]], object),
        pd.Series([2.0, 1.0], index=["x", "7"]),
        pd.Series(["x", "7"]),
    ],
)
def test_search_hits_pairs_and_what_data_frames_hold_are_read(ranking):
    assert metrics.mrr({3.0: ranking}, [("3", "7", 1)]) == 1 / 2


def test_a_negative_grade_counts_as_0_and_any_cut_is_taken():
    judgments = {"q": {"a": -1, "b": 1, "c": 0}}
    for k in (2, 10**12):
        assert metrics.ndcg({"q": ["a", "b"]}, judgments, k) == pytest.approx(1 / LOG3)
        assert metrics.ndcg({"q": []}, judgments, k) == 0


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ({"q1": {"a", "b"}}, r"rankings\['q1'\]: it is a set"),
        ({"q1": [{"id": "a"}]}, r"rankings\['q1'\]: an id is {'id': 'a'}, a dict"),
        ({"q1": [math.nan]}, "an id is nan"),
        ({"q1": {"c": 2.0, "a": math.nan}}, "the score of 'a' is nan. Give numbers"),
        ({"q1": {"a": 10**400}}, "the score of 'a' is 1"),
        ({"q1": pd.DataFrame({"a": [1.0]})}, r"rankings\['q1'\]: it is a DataFrame"),
        ({"q1": np.array("a")}, r"rankings\['q1'\]: it is a ndarray"),
        ({"q1": [True]}, "an id is True, a bool"),
        (["a"], "rankings: it is a list. Give a dictionary"),
        ({"q1": ["a", "b", "a"]}, "'a' is there twice"),
        ({1: ["a"], "1": ["b"]}, "a query is there twice"),
    ],
)
def test_rankings_that_cannot_be_read_are_an_error(rankings, message):
    with pytest.raises(InputError, match=message):
        metrics.ndcg(rankings, JUDGMENTS)


@pytest.mark.parametrize(
    ("judgments", "message"),
    [
        ([("q4", "a", 0)], "no query has a relevant document"),
        ([("q1", "a", 2), ("q1", "a", 1)], "'a' has grade 2 for query 'q1', and another grade"),
        ([("q1", "a", 1 << 40)], "'a' has grade 1099511627776 for query 'q1', beyond 16777216"),
    ],
)
def test_judgments_that_cannot_be_read_are_an_error(judgments, message):
    with pytest.raises(InputError, match=message):
        metrics.ndcg(RANKINGS, judgments)


# Grades and scores of three lists, the last without a relevant document; -1 is padding.
GRADES = np.array([[2, 0, 1, 0], [1, 0, -1, -1], [0, 0, 0, -1]])
SCORES = np.array([[0.5, 0.9, 0.7, 0.1], [0.3, 0.2, 9.0, 9.0], [1.0, 2.0, 3.0, 0.0]])


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        # The first list is ranked 0, 1, 2, 0; the second 1, 0.
        (metrics.NDCG(), ((1 / LOG3 + 2 / 2) / (2 + 1 / LOG3) + 1) / 2),
        (metrics.NDCG(k=2), ((1 / LOG3) / (2 + 1 / LOG3) + 1) / 2),
        (metrics.MRR(), (1 / 2 + 1) / 2),
        (metrics.MRR(k=1), (0 + 1) / 2),
        (metrics.Precision(k=2), (1 / 2 + 1 / 2) / 2),
    ],
)
def test_keras_metrics_by_hand(metric, expected):
    metric.update_state(GRADES[:1], SCORES[:1])
    metric.update_state(GRADES[1:], SCORES[1:])
    assert float(metric.result()) == pytest.approx(expected)
    copy = type(metric).from_config(metric.get_config())
    second = {"precision": 1 / 2}.get(metric.name.split("_")[0], 1.0)
    masked = tf.constant(SCORES, tf.float16)
    masked._keras_mask = GRADES >= 0  # what it leaves out has a grade here
    as_weights = (GRADES >= 0) * np.array([[0], [2], [1]])  # as Keras 2 makes them of a mask
    for scores, weights in ((SCORES, [0, 2, 1]), (SCORES, as_weights), (masked, [[0], [2], [1]])):
        copy.reset_state()
        copy.update_state(GRADES if scores is SCORES else abs(GRADES), scores, weights)
        assert float(copy.result()) == pytest.approx(second)
    copy.update_state(abs(GRADES[:2]), SCORES[:2], as_weights[:2])  # by the weights alone
    assert float(copy.result()) == pytest.approx(second)
    metric.reset_state()
    assert float(metric.result()) == 0


def test_ties_padding_nan_and_single_scores():
    metric = metrics.MRR()
    metric.update_state([[2, 0, 1, 0]], [[0.5, 0.5, 0.5, 0.5]])
    assert float(metric.result()) == pytest.approx(1 / 3)  # the relevant ones are not favoured
    metric.reset_state()
    metric.update_state([[1, -1]], [[float("-inf"), 5.0]])
    metric.update_state([[1, 0], [1, -1]], [[0.5, 0.1], [0.5, math.nan]])  # NaN at padding
    assert float(metric.result()) == 1
    metric.update_state([[1, 0]], [[0.5, math.nan]])
    assert math.isnan(float(metric.result()))
    metric.reset_state()
    near = np.array([[0.5, 0.5 + 1e-12]])  # one number in float32, where ties count against it
    metric.update_state([[0, 1]], near)
    for shape in ((0, 3), (2, 0)):
        metric.update_state(np.zeros(shape), np.zeros(shape))
    assert float(metric.result()) == 1
    for grades, scores, weights, message in (
        ([1, 0], [0.5, 0.1], None, "needs whole lists"),
        ([[1], [0]], [[0.5, 0.1]], None, "y_true has shape"),
        ([[True, False]], [[0.5, 0.1]], None, "y_true holds bool values"),
        ([[1, math.nan]], [[0.5, 0.1]], None, "a label is NaN or infinite"),
        ([[1, 0]], [[0.5, 0.1]], [1.0, 2.0], "sample_weight has shape"),
        ([[1, 0]], [[0.5, 0.1]], [[1.0, 2.0]], "documents of one list have different weights"),
    ):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
            metric.update_state(np.array(grades), np.array(scores), weights)
