"""Words of similar spelling."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_smoothclir.lexical.related_words import shared_counts, similar_words

WORDS = ["walk", "walked", "walks", "talks", "house", "houses", "1998", "1999", "x", "", "Ökar"]


def cosine(first: str, second: str, words: list[str]) -> float:
    """Of TF-IDF vectors of n-grams that more than one word has; the slow way."""
    grams = {
        word: {
            f"<{word}>"[begin : begin + length]
            for length in (3, 4, 5)
            for begin in range(len(word) + 3 - length)
        }
        for word in words
    }
    words_with = collections.Counter(gram for own in grams.values() for gram in own)
    rarity = {gram: math.log(len(words) / number) for gram, number in words_with.items()}

    def length(word: str) -> float:
        return math.sqrt(sum(rarity[gram] ** 2 for gram in grams[word]))

    common = grams[first] & grams[second]
    return sum(rarity[gram] ** 2 for gram in common) / (length(first) * length(second))


def test_the_similarity_is_the_fourth_power_of_the_cosine_of_ngrams():
    words = ["walk", "walked", "walks", "talks", "house", "houses"]
    found = similar_words(words).toarray()
    for row, first in enumerate(words):
        for column, second in enumerate(words):
            expected = 0.0 if first == second else cosine(first, second, words)
            expected = expected**4 if expected >= 0.3 else 0.0
            assert found[row, column] == pytest.approx(expected, abs=1e-6), (first, second)
    assert np.count_nonzero(found) >= 4


def test_numbers_and_single_characters_are_like_no_other_word():
    found = similar_words(WORDS).toarray()
    for word in ("1998", "1999", "x", ""):
        assert not found[WORDS.index(word)].any()
        assert not found[:, WORDS.index(word)].any()
    assert found[WORDS.index("house"), WORDS.index("houses")] > 0


@pytest.mark.parametrize("words", [[], ["alone"], ["x", "y"], ["", "", ""]])
def test_a_vocabulary_without_neighbours(words):
    found = similar_words(words)
    assert found.shape == (len(words), len(words))
    assert found.nnz == 0


@settings(max_examples=30, deadline=None)
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=8), unique=True, max_size=12))
def test_the_similarity_is_symmetric_and_never_of_a_word_with_itself(words):
    found = similar_words(words).toarray()
    np.testing.assert_allclose(found, found.T, atol=1e-6)
    assert not np.diag(found).any()
    assert found.size == 0 or 0 <= found.min() <= found.max() <= 1 + 1e-5


def test_neighbours_of_a_document_word_count_as_two_occurrences_together():
    # Document word 0 was seen with query word 0 four times; word 1 was never seen, and looks like
    # word 0; word 2 looks like none.
    counts = sp.csr_array(np.array([[4.0, 0], [0, 0], [0, 3.0]], np.float32))
    similar = sp.csr_array(np.array([[0, 0.5, 0], [0.5, 0, 0], [0, 0, 0]], np.float32))
    none = sp.csr_array((2, 2), dtype=np.float32)
    found = shared_counts(counts, similar, none).toarray()
    np.testing.assert_allclose(found, [[4, 0], [2 * 4 / 4, 0], [0, 3]])


def test_few_occurrences_of_neighbours_count_less():
    # Σ s c = 0.5 · 0.4 = 0.2, so they count 2 · 0.2.
    counts = sp.csr_array(np.array([[0.4, 0], [0, 0]], np.float32))
    similar = sp.csr_array(np.array([[0, 0.5], [0.5, 0]], np.float32))
    none = sp.csr_array((2, 2), dtype=np.float32)
    found = shared_counts(counts, similar, none).toarray()
    np.testing.assert_allclose(found, [[0.4, 0], [2 * 0.2, 0]], rtol=1e-6)


def test_query_words_get_a_tenth_of_what_their_neighbours_have():
    counts = sp.csr_array(np.array([[5.0, 0, 1]], np.float32))
    similar = sp.csr_array(np.array([[0, 0.8, 0], [0.8, 0, 0], [0, 0, 0]], np.float32))
    none = sp.csr_array((1, 1), dtype=np.float32)
    found = shared_counts(counts, none, similar).toarray()
    np.testing.assert_allclose(found, [[5, 0.1 * 0.8 * 5, 1]], rtol=1e-6)


def test_shares_below_two_thousandths_are_left_out():
    counts = sp.csr_array(np.array([[1000.0, 1.9, 3]], np.float32))
    nothing = [sp.csr_array((size, size), dtype=np.float32) for size in (1, 3)]
    np.testing.assert_allclose(shared_counts(counts, *nothing).toarray(), [[1000, 0, 3]])
