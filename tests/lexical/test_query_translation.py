"""Queries word by word in the language of the documents."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tf_smoothclir.lexical.query_translation import by_nearest, by_table, inverted, literal
from tf_smoothclir.lexical.words import same_spelling

QUERY_WORDS = ["[PAD]", "[UNK]", "dog", "cat", "html"]
DOCUMENT_WORDS = ["[PAD]", "[UNK]", "chien", "chat", "html", "chienne", "42"]
SPELLING = same_spelling(QUERY_WORDS, DOCUMENT_WORDS)
KNOWN = len(QUERY_WORDS)
TABLE = np.zeros((SPELLING.shape[1], SPELLING.shape[0]), np.float32)
TABLE[2, [2, 5, 3]] = 0.5, 0.3, 0.1
TABLE[3, 3] = 0.2


def words_of(translation, word):
    row = translation.toarray()[word]
    return {DOCUMENT_WORDS[place]: round(float(row[place]), 6) for place in np.flatnonzero(row)}


def test_literal_leaves_words_as_they_are_spelled():
    found = literal(SPELLING)
    assert words_of(found, 4) == {"html": 1}
    assert words_of(found, KNOWN + 6) == {"42": 1}  # a word that only documents have
    assert words_of(found, 2) == {}


@pytest.mark.parametrize(
    ("most", "expected"),
    [
        (1, {"chien": 1}),
        (2, {"chien": 0.625, "chienne": 0.375}),  # 0.5 / 0.8, 0.3 / 0.8
        (3, {"chien": 0.555556, "chienne": 0.333333, "chat": 0.111111}),
        (9, {"chien": 0.555556, "chienne": 0.333333, "chat": 0.111111}),
    ],
)
def test_the_best_translations_share_one_word(most, expected):
    found = by_table(sp.csr_array(TABLE), SPELLING, most)
    assert words_of(found, 2) == expected
    assert words_of(found, 3) == {"chat": 1}
    assert words_of(found, 4) == {"html": 1}  # not in the table
    assert words_of(found, KNOWN + 6) == {"42": 1}


VECTORS = {"dog": [1, 0], "cat": [0, 2], "html": [0, 0]}
DOCUMENT_VECTORS = {"chien": [0.1, 0.9], "chat": [0, 5], "chienne": [9, 1], "42": [1, 0]}


def nearest(missing=()):
    queries = np.array([VECTORS.get(word, [0, 0]) for word in QUERY_WORDS], np.float32)
    documents = np.array([DOCUMENT_VECTORS.get(word, [0, 0]) for word in DOCUMENT_WORDS], float)
    occurring = np.array([word not in missing for word in DOCUMENT_WORDS])
    return by_nearest(queries, documents, occurring, SPELLING)


def test_the_nearest_word_is_that_of_the_largest_cosine_not_of_the_longest_vector():
    assert words_of(nearest(), 2) == {"42": 1}  # cosine 1; "chienne" 0.994 and longer
    assert words_of(nearest(), 3) == {"chat": 1}


def test_words_that_no_document_has_are_no_translation():
    assert words_of(nearest(missing=["42"]), 2) == {"chienne": 1}


def test_words_without_a_vector_stay_as_they_are():
    assert words_of(nearest(), 4) == {"html": 1}
    assert words_of(nearest(missing=DOCUMENT_WORDS), 2) == {}  # nothing to be near to
    assert words_of(nearest(missing=DOCUMENT_WORDS), 4) == {"html": 1}


def test_many_words_are_compared_in_parts(monkeypatch):
    monkeypatch.setattr("tf_smoothclir.lexical.query_translation._SIMILARITIES_AT_ONCE", 1)
    assert words_of(nearest(), 3) == {"chat": 1}


def test_a_table_is_turned_round_by_bayes_rule():
    # P(w | t) for t = 0, 1, and P(t) = 1/4, 3/4: P(t = 0 | w = 0) = 0.2 / (0.2 + 0.3).
    table = sp.csr_array(np.array([[0.8, 0.2], [0.4, 0.0]], np.float32))
    found = inverted(table, np.array([0.25, 0.75]))
    np.testing.assert_allclose(found.toarray(), [[0.4, 0.6], [1, 0]], rtol=1e-6)


def test_words_that_never_occur_translate_nothing():
    table = sp.csr_array(np.array([[0.8, 0.2], [0.0, 1.0]], np.float32))
    found = inverted(table, np.array([0.0, 1.0]))
    np.testing.assert_allclose(found.toarray(), [[0, 0], [0, 1]])
