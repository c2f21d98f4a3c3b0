"""Padded ids of texts, and which words are left out."""

import numpy as np
import pytest

from tf_smoothclir.data.ragged_store import RaggedStore, RaggedWriter
from tf_smoothclir.interaction.texts import content_words, padded_ids

TEXTS = [[5, 2, 7], [], [3, 3, 3, 4, 9]]


@pytest.fixture
def store(tmp_path):
    with RaggedWriter(tmp_path, "query", "<i4") as writer:
        writer.add(np.concatenate(TEXTS).astype(np.int32), np.array([len(t) for t in TEXTS]))
    return RaggedStore(tmp_path, "query", "<i4")


def test_texts_are_padded_behind_and_cut_after_words_are_left_out(store, tmp_path):
    padded = padded_ids(store, 10)
    np.testing.assert_array_equal(padded, [[5, 2, 7, 0, 0], [0, 0, 0, 0, 0], [3, 3, 3, 4, 9]])
    assert padded.dtype == np.int32
    np.testing.assert_array_equal(padded_ids(store, 2), [[5, 2], [0, 0], [3, 3]])
    kept = np.array([False, True, False, False, True])  # ids from 5 on are kept
    np.testing.assert_array_equal(padded_ids(store, 2, kept), [[5, 7], [0, 0], [4, 9]])
    with RaggedWriter(tmp_path, "document", "<i4") as writer:  # empty texts have one column
        writer.add(np.zeros(0, np.int32), np.zeros(2, int))
    assert padded_ids(RaggedStore(tmp_path, "document", "<i4"), 5).tolist() == [[0], [0]]


def test_content_words_have_letters_and_are_not_too_common(store):
    #              0        1        2    3      4    5      6     7      8     9
    vocabulary = ["[PAD]", "[UNK]", "!", "the", "x", "cat", "水", "b2b", "--", "is"]
    kept = content_words(vocabulary, store, np.array([0, 1, 2]), most_common=0.4)
    # Each word stands in one of three texts, a share of 0.33.
    assert kept.tolist() == [False, True, False, True, False, True, True, True, False, True]
    # With two texts counted, words of either stand in half of them; others in none.
    kept = content_words(vocabulary, store, np.array([0, 2]), most_common=0.4)
    assert kept.tolist() == [False, True, False, False, False, False, True, False, False, False]
