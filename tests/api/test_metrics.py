"""Metrics of anybody's rankings, by hand, and the same as Keras metrics."""

import math

import numpy as np
import pytest

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
    ],
)
def test_search_hits_pairs_and_ids_of_data_frames_are_read(ranking):
    assert metrics.mrr({"q": ranking}, [("q", "7", 1)]) == 1 / 2


def test_a_negative_grade_counts_as_0():
    judgments = {"q": {"a": -1, "b": 1}}
    assert metrics.ndcg({"q": ["a", "b"]}, judgments) == pytest.approx(1 / LOG3)


@pytest.mark.parametrize(
    ("rankings", "message"),
    [
        ({"q1": {"a", "b"}}, r"rankings\['q1'\]: it is a set"),
        ({"q1": [{"id": "a"}]}, r"rankings\['q1'\]: an id is {'id': 'a'}, a dict"),
        ({"q1": [math.nan]}, "an id is nan"),
        ({"q1": {"c": 2.0, "a": math.nan}}, "the score of 'a' is nan. Give numbers"),
        (["a"], "rankings: it is a list. Give a dictionary"),
        ({"q1": ["a", "b", "a"]}, "'a' is there twice"),
    ],
)
def test_other_input_is_an_error(rankings, message):
    with pytest.raises(InputError, match=message):
        metrics.ndcg(rankings, JUDGMENTS)
    with pytest.raises(InputError, match="no query has a relevant document"):
        metrics.ndcg(RANKINGS, [("q4", "a", 0)])


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
    copy.update_state(GRADES, SCORES, sample_weight=[0.0, 1.0, 1.0])
    second = {"precision": 1 / 2}.get(metric.name.split("_")[0], 1.0)
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
    with pytest.raises(ValueError, match="needs whole lists"):
        metric.update_state(np.array([1, 0]), np.array([0.5, 0.1]))
