"""Learned weights of query words."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import counts
from tf_smoothclir.lexical.word_weights import candidate_features, learn_word_weights

IMPACTS = sp.csr_array(np.array([[0, 1.0, 2.0], [0, 3.0, 0], [0, 0, 0.5]], np.float32))


def test_features_are_counts_times_impacts():
    queries = counts([1, 1, 2], [2], size=3)
    found = candidate_features(queries, IMPACTS, np.array([[0, 2], [1, 0]])).toarray()
    assert found.tolist() == [[0, 2 * 1, 2], [0, 0, 0.5], [0, 0, 0], [0, 0, 2]]


def features_of(telling: int, misleading: int, queries: int = 40) -> sp.csr_array:
    """Word `telling` speaks for the relevant document, `misleading` for the other one."""
    rows = np.zeros((2 * queries, 4), np.float32)
    rows[0::2, telling] = 1
    rows[1::2, misleading] = 1
    rows[0:2] = rows[1::-1]  # one query is the other way round, so that the best weights are finite
    return sp.csr_array(rows)


def test_words_that_tell_count_more_than_words_that_mislead():
    weights = learn_word_weights([features_of(1, 2)], 2)
    assert weights.shape == (1, 4)
    assert weights[0, 1] > 2 * weights[0, 2] > 0


def test_the_penalty_keeps_words_together():
    loose, tight = (learn_word_weights([features_of(1, 2)], 2, penalty) for penalty in (1.0, 1e4))
    assert loose[0, 1] / loose[0, 2] > 1.5 * tight[0, 1] / tight[0, 2]
    assert tight[0, 1] / tight[0, 2] == pytest.approx(1, abs=0.05)


def test_words_of_no_training_query_have_the_weight_of_their_field():
    weights = learn_word_weights([features_of(1, 2), features_of(1, 2)], 2, 1e6)
    assert weights[:, 0] == pytest.approx(weights[:, 3])
    assert weights[:, 1] == pytest.approx(weights[:, 3], rel=1e-3)


def test_the_field_that_tells_counts_more():
    weights = learn_word_weights([features_of(1, 2), features_of(2, 1)], 2)
    assert weights[0, 3] / weights[1, 3] > 0.3 / 0.03  # where both began
