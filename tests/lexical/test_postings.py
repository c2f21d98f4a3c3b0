"""Inverted lists, and the highest of many scores."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_smoothclir.lexical.postings import COMMON, Postings, SparseRows, filled_postings, highest

# Words 1 and 3 are in more than a quarter of the eight documents, 0 is in none.
IMPACTS = np.zeros((8, 5), np.float32)
IMPACTS[:, 1] = np.arange(1, 9)
IMPACTS[[0, 3, 4], 3] = [5, 6, 7]
IMPACTS[[2, 7], 2] = [0.5, 0.25]
IMPACTS[5, 4] = 9


@pytest.fixture
def postings():
    return Postings.of(sp.csr_array(IMPACTS))


def test_a_word_in_more_than_a_quarter_of_the_documents_is_common():
    assert COMMON == 0.25
    third = np.array([[1, 1], [1, 1], [1, 0], [0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], np.float32)
    assert Postings.of(sp.csr_array(third)).common.tolist() == [0]  # 3 / 8, and 2 / 8


@pytest.mark.parametrize("size", [1, 3, 8])
def test_documents_may_come_in_chunks(postings, size):
    chunks = [sp.csr_array(IMPACTS[begin : begin + size]) for begin in range(0, 8, size)]
    found = filled_postings(chunks, np.count_nonzero(IMPACTS, axis=0), 8)
    assert found.rare.ids.tolist() == postings.rare.ids.tolist()
    assert found.rare.values.tolist() == postings.rare.values.tolist()
    assert found.common_values.tolist() == postings.common_values.tolist()


def test_each_word_is_stored_in_one_of_two_ways(postings):
    assert postings.common.tolist() == [1, 3]
    assert postings.common_values.tolist() == IMPACTS[:, [1, 3]].T.tolist()
    assert np.diff(postings.rare.ends).tolist() == [0, 0, 2, 0, 1]
    assert postings.rare.ids.tolist() == [2, 7, 5]
    assert postings.rare.values.tolist() == [0.5, 0.25, 9]


@pytest.mark.parametrize("words", [[], [0], [1], [2], [1, 2, 3, 4]])
def test_sums_are_those_of_a_matrix_product(postings, words):
    queries = np.zeros((2, 5), np.float32)
    queries[0, words] = [2, 1, 1, 3][: len(words)]
    found = postings.sums(sp.csr_array(queries))
    assert found.dtype == np.float32
    assert found.tolist() == (queries @ IMPACTS.T).tolist()  # quarters: every sum is exact


def test_rows_of_a_matrix():
    rows = SparseRows.of(sp.csr_array(IMPACTS))
    assert len(rows) == 8
    assert rows.ids[rows.row(3)].tolist() == [1, 3]
    assert rows.values[rows.row(3)].tolist() == [4, 6]
    assert rows.ids.dtype == np.int32


@settings(max_examples=200)
@given(st.integers(1, 400), st.integers(1, 20), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_highest_scores_are_those_of_a_sort_with_all_ties(number, depth, values, seed):
    depth = min(depth, number)
    scores = np.random.default_rng(seed).integers(0, values, number).astype(np.float32)
    least = np.sort(scores)[-depth]
    assert highest(scores, depth).tolist() == np.flatnonzero(scores >= least).tolist()
