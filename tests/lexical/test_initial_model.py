"""A lexical model goes on from another one: it learns new words, and forgets nothing."""

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import counts
from tf_smoothclir.lexical.initial_model import InitialModel
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.positions import FLAT
from tf_smoothclir.lexical.psq import background
from tf_smoothclir.lexical.word_weights import learn_word_weights

# Vocabularies of [PAD], [UNK] and a word of queries; of [PAD], [UNK] and two words of documents.
# Query words 3 to 6 are document words. Later there are two more words of each.
FORMER, SHAPE = (4, 3 + 4), (6, 5 + 6)
FORMER_QUERIES, QUERIES = counts([2, 2, 6], size=FORMER[1]), counts([2, 3, 3, 8, 8], size=SHAPE[1])


def matrix(cells, shape):
    values, places = list(cells.values()), tuple(np.array(list(cells)).T)
    return sp.csr_array((np.array(values, np.float32), places), shape=shape)


@pytest.fixture
def initial():
    model = LexicalModel(
        table=matrix({(2, 2): 1.0, (3, 2): 0.5}, FORMER),
        lookalikes=matrix({(3, 2): 0.25}, FORMER),
        background=background(FORMER_QUERIES),
        fields=(FLAT,),
        weights=np.array([[0.3, 0.3, 0.7, 0.3, 0.3, 0.3, 0.1]], np.float32),
        evidence=np.array([0, 0, 3, 0], np.float32),
    )
    return InitialModel(model, SHAPE, QUERIES.sum(axis=0))


def test_a_word_of_both_has_the_translations_of_both_by_their_counts(initial):
    learned = {(2, 3): 1.0, (3, 3): 0.8, (4, 2): 0.2, (4, 3): 0.8, (5, 4): 1.0}
    evidence = np.array([0, 0, 1, 0, 2, 0], np.float32)
    table, counted = initial.table(matrix(learned, SHAPE), evidence)
    expected = {
        **{(2, 2): 3 / 4, (2, 3): 1 / 4},
        (3, 2): 0.5,  # no pair has it now, and words like it do not count
        **{(4, 2): 0.2, (4, 3): 0.8, (5, 4): 1.0},  # new ones, the last by words like it
    }
    np.testing.assert_array_equal(table.toarray(), matrix(expected, SHAPE).toarray())
    assert counted.tolist() == [0, 0, 4, 0, 2, 0]
    # What came from a dictionary counts as if it had occurred once.
    table, _ = initial.table(matrix(learned, SHAPE), np.array([0, 0, 0, 4, 0, 0], np.float32))
    assert table[3, 2] == pytest.approx(0.5 / 5)
    assert table[3, 3] == pytest.approx(0.8 * 4 / 5)


def test_words_that_only_documents_had_move_behind_the_new_ones(initial):
    assert initial.words.tolist() == [0, 1, 2, 5, 6, 7, 8]
    found = matrix({(3, 2): 1.0, (3, 3): 0.5, (4, 2): 0.4, (2, 8): 1.0}, SHAPE)
    expected = {(3, 2): 0.25, (3, 3): 0.5, (4, 2): 0.4}
    found = initial.lookalikes(found).toarray()
    np.testing.assert_array_equal(found, matrix(expected, SHAPE).toarray())


def test_new_words_have_their_share_of_all_queries_and_others_keep_theirs(initial):
    assert np.flatnonzero(initial.is_new).tolist() == [3]  # word 8 was word 6
    # Each word counts 0.1 more than it occurs. In the sum, each that occurs counts that twice.
    former, both = 3 + 2 * 0.2, 8 + 3 * 0.2
    expected = np.full(SHAPE[1], 0.1 / former)
    expected[[2, 3, 8]] = 2.1 / former, 2.1 / both, 1.1 / former
    assert initial.background == pytest.approx(expected)
    assert initial.background[[2, 8]].tolist() == initial.model.background[[2, 6]].tolist()


def test_weights_are_learned_for_new_words_alone():
    former = np.array([[0.3, 0.3, 0.7, 0.3]], np.float32)
    # Word 2 is for the wrong document in each query, word 3 for the mate.
    features = [np.tile(np.eye(2, dtype=np.float32)[::-1], (20, 1))]
    queries, is_new = counts(*[[2, 3]] * 20, size=4), np.arange(4) == 3
    found = learn_word_weights(queries, features, former=former, is_new=is_new)
    assert found.astype(np.float32)[0, :3].tolist() == former[0, :3].tolist()
    assert found[0, 3] > 0.4
