"""IBM Model 1 against hand arithmetic, a plain loop, and NLTK."""

from __future__ import annotations

import collections
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nltk import translate

from tests.lexical.helpers import counts, shares
from tf_smoothclir.lexical.ibm_model_1 import Alignments, pruned

QUERIES = [[1, 2], [1, 3, 3], [2, 4]]
DOCUMENTS = [[5, 6], [5, 7], [6, 8, 5]]


def learned(queries, documents, rounds, weights=None, size=10):
    alignments = Alignments.of(counts(*queries, size=size), shares(*documents, size=size))
    table, likelihoods = alignments.learn_table(rounds, weights)
    return table.toarray(), likelihoods


def by_loop(queries, documents, rounds):
    """EM word by word, from the formulas: T[t, w]."""
    vocabulary = sorted({word for query in queries for word in query})
    table = collections.defaultdict(lambda: 1 / len(vocabulary))
    for _ in range(rounds):
        expected = collections.Counter()
        for query, document in zip(queries, documents):
            for word in query:
                total = sum(table[t, word] / len(document) for t in document)
                for t in document:
                    expected[t, word] += table[t, word] / len(document) / total
        totals = collections.Counter()
        for (t, _), count in expected.items():
            totals[t] += count
        table = collections.defaultdict(
            float, {(t, word): count / totals[t] for (t, word), count in expected.items()}
        )
    return table


@pytest.mark.parametrize("rounds", [1, 2, 6])
def test_probabilities_are_those_of_a_plain_loop(rounds):
    table, _ = learned(QUERIES, DOCUMENTS, rounds)
    expected = by_loop(QUERIES, DOCUMENTS, rounds)
    for (t, word), probability in expected.items():
        assert table[t, word] == pytest.approx(probability, rel=1e-5)
    assert np.count_nonzero(table) == sum(value > 0 for value in expected.values())


def test_one_round_by_hand():
    # Each word of "1 2" is to one half due to each word of "5 6": c = 1/2 for all four pairs.
    table, likelihoods = learned([[1, 2]], [[5, 6]], 1)
    assert table[5, 1] == table[5, 2] == table[6, 1] == table[6, 2] == 0.5
    # P(1 | d) = P(2 | d) = 1/2 before it: T is 1/2 everywhere.
    assert likelihoods == pytest.approx([2 * math.log(0.5)])


def test_more_rounds_find_which_word_is_which():
    table, _ = learned(QUERIES, DOCUMENTS, 30)
    assert table[5, 1] > 0.9
    assert table[7, 3] > 0.9


def test_nltk_finds_the_same():
    queries = [list(dict.fromkeys(query)) for query in QUERIES]  # it counts repeated words twice
    null = 9  # NLTK lets a word of the query stand for nothing: here, a word of every document
    pairs = [
        translate.AlignedSent(list(map(str, query)), list(map(str, document)))
        for query, document in zip(queries, DOCUMENTS)
    ]
    theirs = translate.IBMModel1(pairs, 5).translation_table
    ours, _ = learned(queries, [[*document, null] for document in DOCUMENTS], 5)
    for query, document in zip(queries, DOCUMENTS):  # what never met keeps its first value there
        for word in query:
            for t in document:
                assert ours[t, word] == pytest.approx(theirs[str(word)][str(t)], abs=1e-5)
            assert ours[null, word] == pytest.approx(theirs[str(word)][None], abs=1e-5)


texts = st.lists(st.integers(1, 7), max_size=6)


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=8))
def test_likelihood_never_falls_and_rows_are_distributions(pairs):
    queries, documents = map(list, zip(*pairs))
    table, likelihoods = learned(queries, documents, 5)
    assert (np.diff(likelihoods) >= -1e-4).all()
    rows = table.sum(axis=1)
    aligned = {t for query, document in pairs for t in document if query}
    assert rows[sorted(aligned)] == pytest.approx(1)
    assert not np.delete(rows, sorted(aligned)).any()


def test_a_pair_of_weight_0_is_as_if_it_were_not_there():
    weighted, likelihood = learned(QUERIES, DOCUMENTS, 4, np.array([1, 1, 0]))
    without, expected = learned(QUERIES[:2], DOCUMENTS[:2], 4)
    # The first table is 1 / (number of different query words): 4 there, 3 here.
    assert weighted == pytest.approx(without, abs=1e-6)
    assert likelihood[1:] == pytest.approx(expected[1:])


def test_empty_texts_and_no_pairs_give_an_empty_table():
    assert not learned([[], [1]], [[2], []], 3)[0].any()
    assert not learned([], [], 3)[0].any()


def test_pruning_leaves_the_rest_as_it_is():
    alignments = Alignments.of(counts(*QUERIES, size=10), shares(*DOCUMENTS, size=10))
    table, _ = alignments.learn_table(6)
    whole, kept = table.toarray(), pruned(table, 0.1).toarray()
    np.testing.assert_array_equal(kept, np.where(whole >= 0.1, whole, 0))
