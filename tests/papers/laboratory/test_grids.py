"""Thresholds below what scores reach, and beyond the edge of a grid."""

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.papers.laboratory.grids import beyond_edge, highest_score, reachable
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

GRID = tuple((low, high) for low in (0.0, 0.2, 0.4) for high in (0.5, 0.7, 0.9))
CUTS = tuple((low, 0.55, 0.9) for low in (0.0, 0.2))


@pytest.mark.parametrize(
    ("dim", "epsilon", "expected"),
    [(64, 0, 1), (64, 1.5, (8 / 9.5) ** 2), (64, 2, 0.64), (512, 2, 0.844), (4, 1, 4 / 9)],
)
def test_highest_score_by_hand_and_that_of_saturated_vectors(dim, epsilon, expected):
    assert highest_score(dim, epsilon) == pytest.approx(expected, abs=1e-3)
    vectors = np.tanh(np.full((1, dim), 9.0))
    score = float(SmoothCosineSimilarity(epsilon)([tf.constant(vectors)] * 2)[0])
    assert -1e-6 <= highest_score(dim, epsilon) - score < 1e-5


def test_only_reachable_thresholds_are_tried():
    assert reachable(GRID, 1.0) == GRID
    assert reachable(GRID, 0.71) == tuple(pair for pair in GRID if pair[1] < 0.9)
    scaled = reachable(GRID, 0.5)  # none is below
    assert len(scaled) == len(GRID)
    assert scaled[0] == (0, 0.25)
    assert scaled[-1] == (0.2, 0.45)


@pytest.mark.parametrize(
    ("best", "grid", "limit", "expected"),
    [
        ((0.2, 0.7), GRID, 1.0, []),  # inside
        # 1.1 is above the limit: half the way from 0.9 to 1. All together would pass it too.
        ((0.2, 0.9), GRID, 1.0, [(0.2, 0.95)]),
        ((0.0, 0.7), GRID, 1.0, [(-0.2, 0.7), (-0.2, 0.5)]),
        # 0.6 would pass 0.5 and 0.3 would pass 0.4: half the way is 0.45 for both.
        ((0.4, 0.5), GRID, 1.0, [(0.45, 0.5), (0.4, 0.45), (0.6, 0.7), (0.2, 0.3)]),
    ],
)
def test_beyond_an_edge_a_step_or_half_the_way_to_the_limit(best, grid, limit, expected):
    assert beyond_edge(best, grid, limit) == expected


def test_the_edges_of_other_grids():
    assert (0.2, 1.1) in beyond_edge((0.2, 0.9), GRID, 2.0)
    alone = beyond_edge((0.2, 0.768), [(0.2, 0.768)], 1.0)  # in its row: a step of 0.2
    assert f"{alone[1][0]:g}" == "0"  # without a sign
    found = beyond_edge(CUTS[0], CUTS, 1.0)
    assert {(-0.2, 0.55, 0.9), (0.0, 0.55, 0.95), (0.0, 0.75, 0.9)} <= set(found)
    assert all(list(cut) == sorted(cut) for cut in found)


def test_the_search_ends_although_it_always_finds_better_ones():
    tried = list(GRID)
    for _ in range(30):
        more = beyond_edge(max(tried), tried, 0.79)  # the higher, the better
        if not more:
            break
        tried += more
    assert not more
    assert all(-1 < low < high < 0.79 for low, high in tried if (low, high) not in GRID)
