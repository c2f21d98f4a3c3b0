"""Numbers of words, and their matrices."""

from __future__ import annotations

import numpy as np
import pytest

from tests.lexical.helpers import words
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.words import document_words, same_spelling


def test_counts_leave_out_words_without_an_id():
    assert words([2, 3, 2, 0], [], size=4).matrix().toarray().tolist() == [[0, 0, 2, 1], [0] * 4]


def test_shares_count_words_without_an_id_as_part_of_the_text():
    found = words([2, 0, 2, 3], size=4).matrix(FLAT).toarray()
    assert found.tolist() == [[0, 0, 2 / 4, 1 / 4]]


def test_shares_follow_the_profile():
    profile = PositionProfile(height=1.0, decay=1 / np.log(2))  # 1 + 1/2^position: 2, 1.5, 1.25
    found = words([3, 2, 3], size=4).matrix(profile).toarray()
    assert found[0] == pytest.approx([0, 0, 1.5 / 4.75, (2 + 1.25) / 4.75])


def test_chosen_texts_are_cut():
    found = words([1, 2, 3], [], [4, 5], size=6).of(np.array([2, 0, 1]), most=2)
    assert found.ids.tolist() == [4, 5, 1, 2]
    assert found.offsets.tolist() == [0, 2, 4, 4]
    assert found.positions().tolist() == [0, 1, 0, 1]


def test_spelling_names_one_query_word_for_each_document_word():
    found = same_spelling(["[PAD]", "[UNK]", "red", "css"], ["[PAD]", "[UNK]", "css", "rot"])
    rows, columns = found.nonzero()
    assert list(zip(rows, columns)) == [(2, 3), (3, 4 + 3)]


def test_words_of_a_set_are_those_of_its_vocabularies(tokenized_set):
    vocabulary = tokenized_set.vocabulary("document")
    found = document_words(tokenized_set)
    store = tokenized_set.tokens("document")
    assert found.size == len(vocabulary)
    for row in range(len(store)):
        own = found.ids[found.offsets[row] : found.offsets[row + 1]]
        assert own.tolist() == [word if word > 1 else 0 for word in store[row].tolist()]
