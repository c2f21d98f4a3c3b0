"""Search by vectors."""

import types

import numpy as np
import pytest

from tf_smoothclir.search.query_reading import QueryBatch
from tf_smoothclir.search.text_search import DenseRanker

SCORES = np.array([0.5, 0, -0.25, 0, 0, -0.5, 0.25, 0], np.float32)


class Half:
    """Ranks by the scores above, times a query of one number."""

    def rank(self, vectors, depth, mask):
        for (factor,) in vectors:
            allowed = np.arange(len(SCORES)) if mask is None else np.flatnonzero(mask)
            order = np.argsort(-factor * SCORES[allowed], kind="stable")[:depth]
            yield allowed[order], factor * SCORES[allowed][order]


@pytest.mark.parametrize(
    ("factor", "depth", "mask", "expected"),
    [
        (1, 2, None, [0, 6]),
        (1, 3, None, [0, 6, 2]),  # the third is the seventh of all
        (1, 4, None, [0, 6, 2, 5]),
        (1, 9, None, [0, 6, 2, 5]),
        (-1, 3, None, [5, 2, 6]),
        (1, 2, SCORES <= 0, [2, 5]),
        (0, 2, None, []),
    ],
)
def test_an_empty_document_takes_no_place_of_a_hit(factor, depth, mask, expected):
    """Hazard: a score of 0 is no hit, but stands before those below 0; there were fewer hits."""
    ranker = DenseRanker.__new__(DenseRanker)
    ranker._half = Half()
    batch = QueryBatch(["q"], [types.SimpleNamespace()], np.float32([[factor]]))
    ((positions, scores),) = ranker.rank(batch, depth, mask)
    assert positions.tolist() == expected
    np.testing.assert_array_equal(scores, factor * SCORES[expected])
