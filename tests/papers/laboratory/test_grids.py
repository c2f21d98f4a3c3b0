"""Thresholds below what scores reach, and beyond the edge of a grid."""

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.papers.laboratory.grids import beyond_edge, highest_score, reachable
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

GRID = tuple((low, high) for low in (0.0, 0.2, 0.4) for high in (0.5, 0.7, 0.9))


@pytest.mark.parametrize(
    ("dim", "epsilon", "expected"),
    [(64, 0, 1), (64, 1.5, (8 / 9.5) ** 2), (64, 2, 0.64), (512, 2, 0.844), (4, 1, 4 / 9)],
)
def test_highest_score_by_hand(dim, epsilon, expected):
    assert highest_score(dim, epsilon) == pytest.approx(expected, abs=1e-3)


def test_scores_of_saturated_vectors_come_near_it_and_not_above():
    vectors = np.tanh(np.full((1, 64), 9.0))
    score = float(SmoothCosineSimilarity(1.5)([tf.constant(vectors)] * 2)[0])
    assert 0 <= highest_score(64, 1.5) - score < 1e-5


def test_only_reachable_thresholds_are_tried():
    assert reachable(GRID, 1.0) == GRID
    assert reachable(GRID, 0.71) == tuple(pair for pair in GRID if pair[1] < 0.9)
    scaled = reachable(GRID, 0.5)  # none is below
    assert len(scaled) == len(GRID)
    assert scaled[0] == (0, 0.25)
    assert scaled[-1] == (0.2, 0.45)


def test_inside_a_grid_nothing_lies_beyond():
    assert beyond_edge((0.2, 0.7), GRID, 1.0) == []


def test_beyond_an_upper_edge_a_step_or_half_the_way_to_the_limit():
    # 1.1 is above the limit: half the way from 0.9 to 1. All together would pass it too.
    assert beyond_edge((0.2, 0.9), GRID, 1.0) == [(0.2, 0.95)]
    assert (0.2, 1.1) in beyond_edge((0.2, 0.9), GRID, 2.0)


def test_beyond_a_lower_edge():
    found = beyond_edge((0.0, 0.7), GRID, 1.0)
    assert found == [(-0.2, 0.7), (-0.2, 0.5)]


def test_at_a_corner_neither_threshold_passes_the_other_but_both_move():
    # 0.6 would pass 0.5 and 0.3 would pass 0.4: half the way is 0.45 for both.
    found = beyond_edge((0.4, 0.5), GRID, 1.0)
    assert found == [(0.45, 0.5), (0.4, 0.45), (0.6, 0.7), (0.2, 0.3)]


def test_zero_has_no_sign():
    found = beyond_edge((0.2, 0.768), [(0.2, 0.768)], 1.0)  # alone in its row: a step of 0.2
    assert f"{found[1][0]:g}" == "0"


def test_the_search_ends_although_it_always_finds_better_ones():
    tried = list(GRID)
    for _ in range(30):
        best = max(tried)  # the higher, the better
        more = beyond_edge(best, tried, 0.79)
        if not more:
            break
        tried += more
    assert not more
    assert all(-1 < low < high < 0.79 for low, high in tried if (low, high) not in GRID)


def test_three_cut_points_move_too():
    cuts = [(low, 0.55, 0.9) for low in (0.0, 0.2)]
    found = beyond_edge((0.0, 0.55, 0.9), cuts, 1.0)
    assert (-0.2, 0.55, 0.9) in found
    assert (0.0, 0.55, 0.95) in found
    assert (0.0, 0.75, 0.9) in found
    assert all(list(cut) == sorted(cut) for cut in found)
