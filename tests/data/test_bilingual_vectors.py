"""Word vectors made of the judged pairs, against a count by hand."""

import math

import numpy as np
import pytest

from tf_smoothclir.data import bilingual_vectors as module
from tf_smoothclir.data.bilingual_vectors import bilingual_vectors
from tf_smoothclir.data.prepared import prepare
from tf_smoothclir.data.source import SPLITS
from tf_smoothclir.settings import TextSettings

DIM = 2048  # an estimate is off by about 1 / √DIM


def places_by_hand(prepared, role):
    """Token id -> the training queries whose text, or best document, has it."""
    found, judged = {}, prepared.retrieval_set
    for place, query in enumerate(np.flatnonzero(judged.splits == SPLITS.index("train"))):
        rows = [query]
        if role == "document":
            best = (judged.query_rows == query) & (judged.grades == judged.num_grades - 1)
            rows = judged.document_rows[best]
        for row in rows:
            for token in prepared.tokens(role)[row].tolist():
                found.setdefault(token, set()).add(place)
    found.pop(1, None)  # unknown
    return found


def correlation(ours, theirs, number):
    """φ of standing in some of so many places."""
    both, a, b = len(ours & theirs), len(ours), len(theirs)
    return (number * both - a * b) / math.sqrt(a * b * (number - a) * (number - b))


def vectors_of(prepared, role, dim=DIM, seed=13):
    size = len(prepared.vocabulary(role))
    return bilingual_vectors(prepared, [role], size=size, dim=dim, seed=seed)


@pytest.mark.parametrize("role", ["query", "document"])
def test_found_are_the_words_of_training_pairs_of_the_highest_grade(prepared, role):
    vectors, found = vectors_of(prepared, role, dim=8)
    assert set(np.flatnonzero(found)) == set(places_by_hand(prepared, role))
    assert not vectors[~found].any()
    assert vectors.dtype == np.float32


def test_inner_products_across_languages_are_correlations(prepared, monkeypatch):
    monkeypatch.setattr(module, "_LISTS_PER_CHUNK", 5)
    judged = prepared.retrieval_set
    number = int((judged.splits == SPLITS.index("train")).sum())
    words = {role: places_by_hand(prepared, role) for role in ("query", "document")}
    vectors = {role: vectors_of(prepared, role)[0] for role in words}
    off = []
    for q, ours in words["query"].items():
        for d, theirs in words["document"].items():
            length = math.sqrt((1 - len(ours) / number) * (1 - len(theirs) / number))
            if length == 0:
                continue
            found = vectors["query"][q] @ vectors["document"][d] / DIM
            off.append(found - correlation(ours, theirs, number) * length)
    assert len(off) > 100
    assert np.std(off) < 2 / math.sqrt(DIM)
    assert abs(np.mean(off)) < 4 * np.std(off) / math.sqrt(len(off)) + 0.01


def test_a_word_that_stands_everywhere_says_nothing(prepared):
    judged = prepared.retrieval_set
    number = int((judged.splits == SPLITS.index("train")).sum())
    vectors, _ = vectors_of(prepared, "query", dim=64)
    for word, places in places_by_hand(prepared, "query").items():
        expected = 1 - len(places) / number
        variance = np.mean(vectors[word] ** 2)
        assert variance == pytest.approx(expected, abs=5 * expected * math.sqrt(2 / 64) + 1e-9)


def test_the_size_of_chunks_changes_nothing_but_rounding(prepared, monkeypatch):
    whole, found = vectors_of(prepared, "document", dim=8)
    monkeypatch.setattr(module, "_LISTS_PER_CHUNK", 3)
    chunked, found_in_chunks = vectors_of(prepared, "document", dim=8)
    np.testing.assert_allclose(chunked, whole, atol=1e-5)
    np.testing.assert_array_equal(found_in_chunks, found)


def test_a_shared_word_has_the_places_of_both_languages(small_set, tmp_path):
    prepared = prepare(small_set, TextSettings(shared_vocabulary=True), tmp_path)
    size = len(prepared.vocabulary("query"))
    _, found = bilingual_vectors(prepared, ["query", "document"], size=size, dim=4, seed=13)
    both = set(places_by_hand(prepared, "query")) | set(places_by_hand(prepared, "document"))
    assert set(np.flatnonzero(found)) == both


def test_the_seed_decides(prepared):
    first, again, other = (vectors_of(prepared, "query", 8, seed)[0] for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_words_behind_the_vocabulary_are_left_out(prepared):
    size = len(prepared.vocabulary("document")) - 5
    vectors, found = bilingual_vectors(prepared, ["document"], size=size, dim=4, seed=13)
    assert vectors.shape == (size, 4)
    assert found.shape == (size,)
