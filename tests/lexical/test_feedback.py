"""Feedback: what it adds, and what it leaves alone."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lexical.helpers import counts
from tf_smoothclir.lexical.feedback import Feedback, rarity, tf_idf

VECTORS = np.array([[1, 0], [0.6, 0.8], [0, 1], [0.8, 0.6]], np.float32)


def test_tf_idf_by_hand():
    found = tf_idf(counts([1, 1, 2], [2, 3], [], size=4)).toarray()
    # Documents with the words: 1, 2, 1 of 3; idf = log(4 / (1 + df)).
    first = np.array([0, np.log(3) * np.log(4 / 2), np.log(2) * np.log(4 / 3), 0])
    assert found[0] == pytest.approx(first / np.linalg.norm(first), rel=1e-5)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 0])


def test_tf_idf_of_some_documents_by_the_rarity_in_all():
    texts = [[1, 1, 2], [2, 3], [], [3, 3, 3]]
    whole, frequency = tf_idf(counts(*texts, size=4)), np.array([0, 1, 2, 2])
    for begin in (0, 2):
        part = tf_idf(counts(*texts[begin : begin + 2], size=4), rarity(frequency, 4))
        np.testing.assert_array_equal(part.toarray(), whole[begin : begin + 2].toarray())


def test_documents_like_the_first_one_come_next():
    scores = np.array([[9, 0, 0, 0]], np.float32)
    found = Feedback.of(sp.csr_array(VECTORS), 10.0, depth=1).added_to(scores)
    assert found == pytest.approx(np.array([[9 + 10 * 1, 10 * 0.6, 0, 10 * 0.8]]))


def test_first_documents_count_by_their_scores():
    scores = np.array([[np.log(3), 0, -9, -9]], np.float32)  # shares 3/4 and 1/4
    found = Feedback.of(sp.csr_array(VECTORS), 1.0, depth=2).added_to(scores)
    mixed = 3 / 4 * VECTORS[0] + 1 / 4 * VECTORS[1]
    similar = VECTORS @ mixed
    assert found[0, 2:] == pytest.approx(scores[0, 2:] + similar[2:])
    assert found[0, :2] == pytest.approx(scores[0, :2] + max(similar[:2]))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_the_order_of_the_first_documents_stays(seed, depth):
    random = np.random.default_rng(seed)
    vectors = random.random((8, 5)) * (random.random((8, 5)) < 0.6)
    scores = random.permutation(8)[np.newaxis].astype(np.float32)
    found = Feedback.of(tf_idf(sp.csr_array(vectors)), 20.0, depth).added_to(scores)
    first = np.argsort(-scores[0])[: min(depth, 8)]
    assert (np.diff(found[0, first]) < 0).all()
    assert (found >= scores - 1e-5).all()


@pytest.mark.parametrize("weight", [0.0, 3.0])
def test_scores_that_are_given_stay_as_they_are(weight):
    scores = np.array([[3, 1, 2, 0]], np.float32)
    Feedback.of(sp.csr_array(VECTORS), weight, 2).added_to(scores)
    assert scores.tolist() == [[3, 1, 2, 0]]
