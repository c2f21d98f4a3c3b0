"""Metrics of full retrieval, by hand."""

from __future__ import annotations

import math

import numpy as np

from tf_smoothclir.evaluation.full_retrieval import retrieval_metrics
from tf_smoothclir.protocols.scorer import Ranking


def test_metrics_by_hand(small_set):
    # Mates: q1 d2, q5 d9 and d10; q4 has no document of the highest grade.
    rows = np.array(
        [
            [7, 1, 0, 2],  # q1: d2 second
            [8, 1, 9, 0],  # q5: d9 first, d10 third
            [7, 0, 1, 2],  # q4
            [0, 2, 3, 4],  # q3: its d6 is not found
        ]
    )
    ranking = Ranking(np.array([0, 4, 3, 2]), rows, np.zeros((4, 4), np.float32))
    found = retrieval_metrics(small_set, ranking, prefix="x/")
    expected = {
        "x/MRR@10": [1 / 2, 1, math.nan, 0],
        "x/Recall@1": [0, 1 / 2, math.nan, 0],
        "x/Recall@10": [1, 2 / 2, math.nan, 0],
        "x/Recall@100": [1, 2 / 2, math.nan, 0],
    }
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_rank_eleven_is_below_the_cut_at_ten(small_set):
    places = [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1]  # d2, the mate of q1, is row 1
    ranking = Ranking(np.array([0]), np.array([places]), np.zeros((1, 11), np.float32))
    found = retrieval_metrics(small_set, ranking)
    assert {name: value.tolist() for name, value in found.items()} == {
        "full/MRR@10": [0],
        "full/Recall@1": [0],
        "full/Recall@10": [0],
        "full/Recall@100": [1],
    }
