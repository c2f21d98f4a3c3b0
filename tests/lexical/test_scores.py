"""Scores of rows: postings, retrieval, feedback, learned weights of words."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.lexical.helpers import counts
from tests.small_world import random_set
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.lexical import retriever
from tf_smoothclir.lexical.feedback import Feedback, rarity, tf_idf
from tf_smoothclir.lexical.postings import COMMON, Postings, filled_postings, highest
from tf_smoothclir.lexical.retriever import RowRetriever, query_chunks
from tf_smoothclir.lexical.score_rows import lexical_rows
from tf_smoothclir.lexical.word_weights import candidate_features, learn_word_weights
from tf_smoothclir.protocols.scorer import Ranking, Retriever

# Words 1 and 3 are in more than a quarter of the eight documents, 0 is in none.
IMPACTS = np.zeros((8, 5), np.float32)
IMPACTS[:, 1] = np.arange(1, 9)
IMPACTS[[0, 3, 4], 3] = [5, 6, 7]
IMPACTS[[2, 7], 2] = [0.5, 0.25]
IMPACTS[5, 4] = 9


@pytest.mark.parametrize("size", [1, 3, 8])
def test_postings_store_each_word_in_one_of_two_ways_and_sum_as_a_matrix_product(size):
    chunks = [sp.csr_array(IMPACTS[begin : begin + size]) for begin in range(0, 8, size)]
    in_chunks = filled_postings(chunks, np.count_nonzero(IMPACTS, axis=0), 8)
    queries = np.vstack([np.diag([0, 2, 3, 1, 1]), [0, 2, 1, 1, 3]]).astype(np.float32)
    for postings in (in_chunks, Postings.of(sp.csr_array(IMPACTS))):
        assert postings.common.tolist() == [1, 3]
        assert postings.common_values.tolist() == IMPACTS[:, [1, 3]].T.tolist()
        assert np.diff(postings.rare.ends).tolist() == [0, 0, 2, 0, 1]
        assert postings.rare.ids.tolist() == [2, 7, 5]
        assert postings.rare.values.tolist() == [0.5, 0.25, 9]
        found = postings.sums(sp.csr_array(queries))
        assert found.dtype == np.float32
        assert found.tolist() == (queries @ IMPACTS.T).tolist()  # quarters: every sum is exact


def test_a_word_in_more_than_a_quarter_of_the_documents_is_common():
    assert COMMON == 0.25
    impacts = np.array([[1, 1, 1, 0, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0, 0, 0]], np.float32).T
    assert Postings.of(sp.csr_array(impacts)).common.tolist() == [0]  # 3 / 8, and 2 / 8


@settings(max_examples=200)
@given(st.integers(1, 400), st.integers(1, 20), st.integers(1, 50), st.integers(0, 2**32 - 1))
def test_the_highest_scores_are_those_of_a_sort_with_all_ties(number, depth, values, seed):
    depth = min(depth, number)
    scores = np.random.default_rng(seed).integers(0, values, number).astype(np.float32)
    least = np.sort(scores)[-depth]
    assert highest(scores, depth).tolist() == np.flatnonzero(scores >= least).tolist()


@pytest.fixture(scope="module")
def world():
    """A set, counts of six query words, impacts of halves: every sum is exact, many are equal."""
    random = np.random.default_rng(3)
    queries = random.integers(0, 3, (23, 6)).astype(np.float32)
    return random_set(23, 40, seed=1), queries, random.integers(0, 3, (40, 6)).astype("f4") / 2


@pytest.mark.parametrize("queries_at_once", [1, 2, 1000])
@pytest.mark.parametrize("depth", [1, 7, 40, 99])
def test_rankings_are_those_of_a_plain_loop_ties_too(world, depth, queries_at_once, monkeypatch):
    monkeypatch.setattr(retriever, "_SCORES_AT_ONCE", 40 * queries_at_once)
    retrieval_set, queries, impacts = world
    expected = [[sum(q * d for q, d in zip(query, row)) for row in impacts] for query in queries]
    rows = lexical_rows(sp.csr_array(queries), sp.csr_array(impacts))
    ranker, asked = RowRetriever(rows, retrieval_set.tie_order), np.array([4, 0, 22, 9, 4])
    found = Ranking.joined(ranker.rank(asked, depth))
    assert found.query_rows.tolist() == asked.tolist()
    for place, scores in enumerate(expected[query] for query in asked):
        assert len(set(scores)) < 40  # there are ties
        order = sorted(range(40), key=lambda d: (-scores[d], retrieval_set.tie_order[d]))[:depth]
        assert found.document_rows[place].tolist() == order
        assert found.scores[place].tolist() == [scores[document] for document in order]
    lists = candidate_lists(retrieval_set, "test", negatives=5, seed=1)
    pairs = zip(lists.pair_query_rows, lists.document_rows)
    assert ranker.score(lists).tolist() == [expected[query][document] for query, document in pairs]


def test_lists_and_rankings_have_the_same_scores_with_feedback(world):
    retrieval_set, queries, impacts = world
    rows = lexical_rows(sp.csr_array(queries), sp.csr_array(impacts))
    feedback = Feedback.of(tf_idf(sp.csr_array(impacts)), 3.0)
    ranker = RowRetriever(rows, retrieval_set.tie_order, feedback)
    assert isinstance(ranker, Retriever)
    (ranking,) = ranker.rank(np.arange(23), 40)
    scores = ranker.score(ranking.candidate_lists(retrieval_set))
    assert scores.tolist() == ranking.scores.reshape(-1).tolist()
    assert (ranker.scores(np.arange(23)) != rows(np.arange(23))).any()


def test_chunks_cover_all_queries_in_order(monkeypatch):
    monkeypatch.setattr(retriever, "_SCORES_AT_ONCE", 30)
    found = [(begin, rows.tolist()) for begin, rows in query_chunks(np.arange(10, 17), 10)]
    assert found == [(0, [10, 11, 12]), (3, [13, 14, 15]), (6, [16])]
    assert len(list(query_chunks(np.arange(3), 1000))) == 3  # one at a time at least


def test_tf_idf_by_hand():
    found = tf_idf(counts([1, 1, 2], [2, 3], [], size=4)).toarray()
    # Documents with the words: 1, 2, 1 of 3; idf = log(4 / (1 + df)).
    first = np.array([0, np.log(3) * np.log(4 / 2), np.log(2) * np.log(4 / 3), 0])
    assert found[0] == pytest.approx(first / np.linalg.norm(first), rel=1e-5)
    assert np.linalg.norm(found, axis=1) == pytest.approx([1, 1, 0])
    # Some documents alone, by the rarity in all.
    some = tf_idf(counts([1, 1, 2], size=4), rarity(np.array([0, 1, 2, 1]), 3))
    np.testing.assert_array_equal(some.toarray(), found[:1])


VECTORS = np.array([[1, 0], [0.6, 0.8], [0, 1], [0.8, 0.6]], np.float32)


def test_feedback_by_hand():
    # Documents like the first one come next.
    scores = np.array([[9, 0, 0, 0]], np.float32)
    found = Feedback.of(sp.csr_array(VECTORS), 10.0, depth=1).added_to(scores)
    assert found == pytest.approx(np.array([[9 + 10 * 1, 10 * 0.6, 0, 10 * 0.8]]))
    assert scores.tolist() == [[9, 0, 0, 0]]  # those that are given stay as they are
    # First documents count by their scores: shares 3/4 and 1/4.
    scores = np.array([[np.log(3), 0, -9, -9]], np.float32)
    found = Feedback.of(sp.csr_array(VECTORS), 1.0, depth=2).added_to(scores)
    similar = VECTORS @ (3 / 4 * VECTORS[0] + 1 / 4 * VECTORS[1])
    assert found[0, 2:] == pytest.approx(scores[0, 2:] + similar[2:])
    assert found[0, :2] == pytest.approx(scores[0, :2] + max(similar[:2]))


@settings(max_examples=50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12))
def test_feedback_keeps_the_order_of_the_first_documents(seed, depth):
    random = np.random.default_rng(seed)
    vectors = random.random((8, 5)) * (random.random((8, 5)) < 0.6)
    scores = random.permutation(8)[np.newaxis].astype(np.float32)
    found = Feedback.of(tf_idf(sp.csr_array(vectors)), 20.0, depth).added_to(scores)
    first = np.argsort(-scores[0])[: min(depth, 8)]
    assert (np.diff(found[0, first]) < 0).all()
    assert (found >= scores - 1e-5).all()


def test_features_are_counts_times_impacts():
    impacts = sp.csr_array(np.array([[0, 1.0, 2.0], [0, 3.0, 0], [0, 0, 0.5]], np.float32))
    queries = counts([1, 1, 2], [2], size=3)
    found = candidate_features(queries, impacts, np.array([[0, 2], [1, 0]])).toarray()
    assert found.tolist() == [[0, 2 * 1, 2], [0, 0, 0.5], [0, 0, 0], [0, 0, 2]]


def features_of(telling: int, misleading: int, queries: int = 40) -> sp.csr_array:
    """Word `telling` speaks for the relevant document, `misleading` for the other one."""
    rows = np.zeros((2 * queries, 4), np.float32)
    rows[0::2, telling] = 1
    rows[1::2, misleading] = 1
    rows[0:2] = rows[1::-1]  # one query is the other way round, so that the best weights are finite
    return sp.csr_array(rows)


def test_words_that_tell_count_more_and_the_penalty_keeps_words_together():
    loose, tight = (learn_word_weights([features_of(1, 2)], 2, penalty) for penalty in (1.0, 1e4))
    assert loose.shape == (1, 4)
    assert loose[0, 1] > 2 * loose[0, 2] > 0
    assert loose[0, 1] / loose[0, 2] > 1.5 * tight[0, 1] / tight[0, 2]
    assert tight[0, 1] / tight[0, 2] == pytest.approx(1, abs=0.05)


def test_words_of_no_training_query_have_the_weight_of_their_field():
    weights = learn_word_weights([features_of(1, 2), features_of(1, 2)], 2, 1e6)
    assert weights[:, 0] == pytest.approx(weights[:, 3])
    assert weights[:, 1] == pytest.approx(weights[:, 3], rel=1e-3)
    # The field that tells counts more.
    weights = learn_word_weights([features_of(1, 2), features_of(2, 1)], 2)
    assert weights[0, 3] / weights[1, 3] > 0.3 / 0.03  # where both began
