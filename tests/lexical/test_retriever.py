"""The retriever that scores whole rows, against plain loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from tests.small_world import random_set
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.lexical import retriever
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.retriever import RowRetriever, query_chunks
from tf_smoothclir.lexical.score_rows import lexical_rows
from tf_smoothclir.protocols.scorer import Ranking, Retriever

WORDS = 6


@pytest.fixture(scope="module")
def world():
    """A set, counts of query words, and impacts of halves: every sum is exact, many are equal."""
    retrieval_set = random_set(23, 40, seed=1)
    random = np.random.default_rng(3)
    queries = random.integers(0, 3, (23, WORDS)).astype(np.float32)
    impacts = (random.integers(0, 3, (40, WORDS)) / 2).astype(np.float32)
    return retrieval_set, queries, impacts


@pytest.fixture
def ranker(world):
    retrieval_set, queries, impacts = world
    rows = lexical_rows(sp.csr_array(queries), sp.csr_array(impacts))
    return RowRetriever(rows, retrieval_set.tie_order)


@pytest.fixture(params=[1, 2, 1000], ids="{} queries at once".format)
def queries_at_once(request, monkeypatch):
    monkeypatch.setattr(retriever, "_SCORES_AT_ONCE", 40 * request.param)


def summed(queries, impacts, query, document):
    return sum(queries[query, word] * impacts[document, word] for word in range(WORDS))


@pytest.mark.usefixtures("queries_at_once")
@pytest.mark.parametrize("depth", [1, 7, 40, 99])
def test_rankings_are_those_of_a_plain_loop_ties_too(world, ranker, depth):
    retrieval_set, queries, impacts = world
    asked = np.array([4, 0, 22, 9, 4])
    found = Ranking.joined(ranker.rank(asked, depth))
    assert found.query_rows.tolist() == asked.tolist()
    ties = 0
    for place, query in enumerate(asked):
        scores = [summed(queries, impacts, query, document) for document in range(40)]
        ties += 40 - len(set(scores))
        order = sorted(range(40), key=lambda d: (-scores[d], retrieval_set.tie_order[d]))[:depth]
        assert found.document_rows[place].tolist() == order
        assert found.scores[place].tolist() == [scores[document] for document in order]
    assert ties


@pytest.mark.usefixtures("queries_at_once")
def test_scores_of_candidate_lists_are_those_of_a_plain_loop(world, ranker):
    retrieval_set, queries, impacts = world
    lists = candidate_lists(retrieval_set, "test", negatives=5, seed=1)
    expected = [
        summed(queries, impacts, query, document)
        for query, document in zip(lists.pair_query_rows, lists.document_rows)
    ]
    assert ranker.score(lists).tolist() == expected


def test_lists_and_rankings_have_the_same_scores_with_feedback(world):
    retrieval_set, queries, impacts = world
    rows = lexical_rows(sp.csr_array(queries), sp.csr_array(impacts))
    feedback = Feedback.of(tf_idf(sp.csr_array(impacts)), 3.0)
    ranker = RowRetriever(rows, retrieval_set.tie_order, feedback)
    (ranking,) = ranker.rank(np.arange(23), 40)
    scores = ranker.score(ranking.candidate_lists(retrieval_set))
    assert scores.tolist() == ranking.scores.reshape(-1).tolist()
    assert (ranker.scores(np.arange(23)) != rows(np.arange(23))).any()


def test_it_is_a_retriever(ranker):
    assert isinstance(ranker, Retriever)


def test_chunks_cover_all_queries_in_order(monkeypatch):
    monkeypatch.setattr(retriever, "_SCORES_AT_ONCE", 30)
    found = [(begin, rows.tolist()) for begin, rows in query_chunks(np.arange(10, 17), 10)]
    assert found == [(0, [10, 11, 12]), (3, [13, 14, 15]), (6, [16])]
    assert len(list(query_chunks(np.arange(3), 1000))) == 3  # one at a time at least
