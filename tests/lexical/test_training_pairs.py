"""What a table is learned from: EM over a list of pairs, the slow way, is the oracle."""

from __future__ import annotations

import collections
import types

import numpy as np
import pytest
import scipy.sparse as sp

from tests.lexical.helpers import counts, words
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.lexical.ibm_model_1 import LEAST_PROBABILITY, ROUNDS, pruned
from tf_smoothclir.lexical.positions import FLAT, PositionProfile
from tf_smoothclir.lexical.training_pairs import TrainingPairs

COMMON, UNSEEN, LATE, SIZE = 1, 14, 15, 16
# Text n has word 2 + n and a word that all texts have.
QUERIES = [[2 + number, COMMON] for number in range(12)]
DOCUMENTS = [[2 + number, COMMON] for number in range(12)]
DOCUMENTS[3] = [5, COMMON, *[5] * 38, LATE]  # the last word is the 41st
QUERIES[2] = [4, COMMON, UNSEEN]  # beyond the known words
MATES = [(0, 0), (1, 1), (2, 2), (3, 3)]
LOWER = [(0, 1), (0, 2), (1, 3), (2, 0)]
OTHERS = [(5, 5), (6, 6)]  # of validation
PROFILE = PositionProfile(3.0, 2.0)


@pytest.fixture
def texts():
    pairs = [*MATES, *LOWER, *OTHERS]
    query_rows, document_rows = np.array(pairs).T
    grades = np.array([2] * len(MATES) + [1] * len(LOWER) + [2] * len(OTHERS))
    splits = np.full(12, SPLITS.index("train"))
    splits[5:] = SPLITS.index("validation")
    return types.SimpleNamespace(
        retrieval_set=types.SimpleNamespace(
            query_rows=query_rows, document_rows=document_rows, grades=grades, splits=splits
        ),
        queries=counts(*QUERIES, size=SIZE),
        documents=words(*DOCUMENTS, size=SIZE),
        known=UNSEEN,
        similar_words=(sp.csr_array((SIZE, SIZE)), sp.csr_array((SIZE, SIZE))),
    )


@pytest.fixture
def pairs(texts):
    return TrainingPairs(texts, texts.documents.matrix)


def slow_em(pairs):
    """T(w | t) from `(query words, {document word: share}, weight)`."""
    found_words = {word for query, _, _ in pairs for word in query}
    table = collections.defaultdict(lambda: 1 / len(found_words))
    for _ in range(ROUNDS):
        expected = collections.Counter()
        for query, document, weight in pairs:
            for word in query:
                total = sum(table[t, word] * share for t, share in document.items())
                for t, share in document.items():
                    expected[t, word] += weight * table[t, word] * share / total
        totals = collections.Counter()
        for (t, _), count in expected.items():
            totals[t] += count
        table = {key: count / totals[key[0]] for key, count in expected.items()}
    return table


def shares(document, profile, kept=lambda word: True):
    """p(t | d): what a word has of the weights of all positions of a text."""
    weights = profile(np.arange(len(document)))
    found = collections.Counter()
    for word, weight in zip(document, weights):
        if kept(word):
            found[word] += weight / weights.sum()
    return found


def expected_table(profile, weight, queries):
    known = [[word for word in query if word < UNSEEN] for query in QUERIES]
    listed = [(known[q], shares(DOCUMENTS[d], profile), 1.0) for q, d in MATES if q in queries]
    if weight:
        rare = [[word for word in query if word != COMMON] for query in known]
        listed += [
            (rare[q], shares(DOCUMENTS[d][:40], profile, lambda word: word != COMMON), weight)
            for q, d in LOWER
            if q in queries
        ]
    return slow_em(listed)


@pytest.mark.parametrize("queries", [[0, 1, 2, 3], [0, 2, 3], [2]])
@pytest.mark.parametrize("profile", [FLAT, PROFILE], ids=["flat", "falling"])
@pytest.mark.parametrize("weight", [0.0, 0.03, 0.5])
def test_tables_are_those_of_em_over_the_pairs(pairs, weight, profile, queries):
    found = pruned(pairs.table(profile, weight, np.array(queries))).toarray()
    expected = np.zeros((SIZE, SIZE))
    for place, probability in expected_table(profile, weight, queries).items():
        expected[place] = probability
    expected[expected < LEAST_PROBABILITY] = 0
    clear = np.abs(expected - LEAST_PROBABILITY) > 1e-4
    np.testing.assert_allclose(found[clear], expected[clear], atol=1e-5)
    assert np.count_nonzero(found) >= 2


def test_pairs_are_those_of_training_queries(pairs):
    assert list(zip(*pairs.mates)) == MATES
    assert list(zip(*pairs.lower)) == LOWER
    assert pairs.training.tolist() == [0, 1, 2, 3]


def test_lower_grades_add_translations(pairs):
    without, found = (pairs.whole_table(FLAT, weight).toarray() for weight in (0.0, 0.1))
    assert without[3, 2] == 0  # document 1 is of query 0 by a lower grade alone
    assert found[3, 2] > 0
    assert found[LATE, 3] == 0  # the 41st word of document 3, which is of query 1
    assert found[LATE, 5] > 0  # but of its mate all words count


def test_whole_tables_are_learned_once(pairs, monkeypatch):
    first = pairs.whole_table(FLAT, 0.03)
    monkeypatch.setattr(TrainingPairs, "table", None)
    assert pairs.whole_table(FLAT, 0.03) is first
