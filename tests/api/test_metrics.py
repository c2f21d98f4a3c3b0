"""Keras metrics of candidate lists, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.api import metrics

LOG3 = math.log2(3)
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


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        (metrics.MRR(), 1 / 2),  # a list without a grade of 1 or more is left out
        (metrics.Precision(1), 0),
        (metrics.NDCG(), (0.5 + 1.5 / LOG3) / (1.5 + 0.5 / LOG3)),
    ],
)
def test_a_grade_below_1_is_not_relevant_and_a_small_gain(metric, expected):
    metric.update_state([[0.5, 1.5, 0], [0.5, 0, 0]], [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]])
    assert float(metric.result()) == pytest.approx(expected)


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
        (tf.ragged.constant([[1, 0], [1]]), tf.ones([2, 2]), None, "y_true is ragged"),
        ([[1, 0]], [[0.5, 0.1]], [1.0, 2.0], "sample_weight has shape"),
        ([[1, 0]], [[0.5, 0.1]], [[1.0, 2.0]], "documents of one list have different weights"),
    ):
        with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match=message):
            metric.update_state(grades, np.array(scores), weights)
