"""Cut points on disk, rankings as candidate lists, and re-ranking by another scorer."""

import numpy as np
import pytest

from tests.cases import cases
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.protocols import scorer, text_search
from tf_smoothclir.utils.errors import InputError

CUT_POINTS = {
    "dense": text_search.CutPoints((0.1 + 0.2, 0.7), ()),
    "hybrid": text_search.CutPoints((1 / 3, 210.25), (0.9, 0.9), (12.0, 20.0), 0.25),
}
WORLD = random_set(20, 60, seed=1)
FIRST_STAGE = vectors_with_ties(WORLD, seed=2)


def test_cut_points_are_kept_as_json_and_another_content_is_a_message(tmp_path):
    path = tmp_path / "grades.json"
    text_search.write_cut_points(path, CUT_POINTS)
    assert text_search.read_cut_points(path) == CUT_POINTS
    wrong = '{"retrievers": {"dense": {"scores": [0.1, "x"], "shares": [], "alone": []}}}'
    for text in ("{}", wrong, "["):
        path.write_text(text)
        with pytest.raises(InputError, match=r"grades\.json: .*Restore the file, or train again"):
            text_search.read_cut_points(path)


class Reranker:
    """Scores by nothing but the rows, with many ties."""

    def score(self, lists):
        return ((lists.pair_query_rows + lists.document_rows) % 4).astype(np.float32)


def test_candidate_lists_of_a_ranking_have_the_grades_of_the_judgments():
    (ranking,) = FIRST_STAGE.rank(np.array([3, 0, 19]), 25)
    lists = ranking.candidate_lists(WORLD)
    assert lists.query_rows.tolist() == [3, 0, 19]
    assert lists.offsets.tolist() == [0, 25, 50, 75]
    np.testing.assert_array_equal(lists.document_rows, ranking.document_rows.ravel())
    judged = dict(zip(zip(WORLD.query_rows, WORLD.document_rows), WORLD.grades))
    pairs = zip(lists.pair_query_rows, lists.document_rows)
    assert lists.grades.tolist() == [judged.get(pair, 0) for pair in pairs]
    assert lists.grades.any()
    np.testing.assert_allclose(FIRST_STAGE.score(lists), ranking.scores.ravel())


def test_other_scores_order_documents_and_break_ties_by_the_set():
    (found,) = FIRST_STAGE.rank(np.array([4, 9]), 12)
    scores = Reranker().score(found.candidate_lists(WORLD)).reshape(2, 12)
    ranking = scorer.ordered(found, scores, WORLD)
    for row, query in enumerate((4, 9)):
        scores = {d: (query + d) % 4 for d in found.document_rows[row].tolist()}
        expected = sorted(scores, key=lambda d: (-scores[d], WORLD.tie_order[d]))
        assert ranking.document_rows[row].tolist() == expected
        assert ranking.scores[row].tolist() == [scores[d] for d in expected]
    again = scorer.ordered(found, found.scores, WORLD)  # by its own scores nothing changes
    np.testing.assert_array_equal(again.document_rows, found.document_rows)


@cases("depth", 3, 8, 20)
def test_two_stages_order_what_the_reranker_has_seen_and_keep_the_rest(depth):
    two_stages = scorer.TwoStageRetriever(FIRST_STAGE, Reranker(), WORLD, ranks=8, weight=0.5)
    queries = np.arange(20)
    ranking = scorer.Ranking.joined(two_stages.rank(queries, depth))
    first = scorer.Ranking.joined(FIRST_STAGE.rank(queries, 20))
    top = first.cut(8)
    added = 0.5 * Reranker().score(top.candidate_lists(WORLD)).reshape(20, 8)
    expected = scorer.ordered(top, top.scores + added, WORLD)
    np.testing.assert_array_equal(ranking.document_rows[:, :8], expected.document_rows[:, :depth])
    np.testing.assert_array_equal(ranking.document_rows[:, 8:], first.document_rows[:, 8:depth])
    assert (np.diff(ranking.scores) <= 0).all()
    lists = top.candidate_lists(WORLD)
    found = two_stages.score(lists)
    np.testing.assert_allclose(found, FIRST_STAGE.score(lists) + added.ravel(), rtol=1e-6)
