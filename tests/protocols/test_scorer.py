"""Rankings as candidate lists, and re-ranking by another scorer."""

import numpy as np
import pytest

from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.protocols.scorer import Ranking, Retriever, Scorer, TwoStageRetriever, rerank


@pytest.fixture(scope="module")
def world():
    return random_set(20, 60, seed=1)


@pytest.fixture(scope="module")
def first_stage(world):
    return vectors_with_ties(world, seed=2)


class Reranker:
    """Scores by nothing but the rows, with many ties."""

    def score(self, lists):
        return ((lists.pair_query_rows + lists.document_rows) % 4).astype(np.float32)


def test_candidate_lists_of_a_ranking_have_the_grades_of_the_judgments(world, first_stage):
    (ranking,) = first_stage.rank(np.array([3, 0, 19]), 25)
    lists = ranking.candidate_lists(world)
    assert lists.query_rows.tolist() == [3, 0, 19]
    assert lists.offsets.tolist() == [0, 25, 50, 75]
    np.testing.assert_array_equal(lists.document_rows, ranking.document_rows.ravel())
    judged = dict(zip(zip(world.query_rows, world.document_rows), world.grades))
    pairs = zip(lists.pair_query_rows, lists.document_rows)
    assert lists.grades.tolist() == [judged.get(pair, 0) for pair in pairs]
    assert lists.grades.any()
    np.testing.assert_allclose(first_stage.score(lists), ranking.scores.ravel())


def test_rerank_sorts_the_found_documents_and_breaks_ties_by_the_set(world, first_stage):
    (found,) = first_stage.rank(np.array([4, 9]), 12)
    ranking = rerank(found, Reranker(), world)
    for row, query in enumerate((4, 9)):
        scores = {d: (query + d) % 4 for d in found.document_rows[row].tolist()}
        expected = sorted(scores, key=lambda d: (-scores[d], world.tie_order[d]))
        assert ranking.document_rows[row].tolist() == expected
        assert ranking.scores[row].tolist() == [scores[d] for d in expected]
    again = rerank(found, first_stage, world)  # by the first stage itself nothing changes
    np.testing.assert_array_equal(again.document_rows, found.document_rows)


@pytest.mark.parametrize("depth", [3, 8, 100])
def test_two_stages_rank_no_more_than_the_reranker_has_seen(world, first_stage, depth):
    two_stages = TwoStageRetriever(first_stage, Reranker(), world, ranks=8)
    assert isinstance(Reranker(), Scorer)
    assert [isinstance(one, Retriever) for one in (Reranker(), two_stages)] == [False, True]
    queries = np.arange(20)
    ranking = Ranking.joined(two_stages.rank(queries, depth))
    expected = rerank(Ranking.joined(first_stage.rank(queries, 8)), Reranker(), world)
    np.testing.assert_array_equal(ranking.document_rows, expected.document_rows[:, :depth])
    np.testing.assert_array_equal(ranking.scores, expected.scores[:, :depth])
