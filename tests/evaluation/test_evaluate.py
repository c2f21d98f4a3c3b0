"""Evaluating a split: the parts agree with each other, files are written, rules are named."""

import numpy as np
import pytest

from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.evaluation.evaluate import (
    NEGATIVES_SEED,
    evaluate_split,
    evaluate_splits,
    metrics_content,
)
from tf_smoothclir.evaluation.metrics import RULES, grade_metrics
from tf_smoothclir.protocols.cut_points import CutPoints
from tf_smoothclir.protocols.scorer import TwoStageRetriever
from tf_smoothclir.settings.training import METRICS
from tf_smoothclir.utils.errors import InputError

FULL = ("full/MRR@10", "full/Recall@1", "full/Recall@10", "full/Recall@100")
CUT_POINTS = CutPoints(scores=(-0.01, 0.01), shares=(0.7, 0.9), alone=())


@pytest.fixture(scope="module")
def world():
    retrieval_set = random_set(25, 60, seed=1)
    return retrieval_set, vectors_with_ties(retrieval_set, seed=2)


@pytest.fixture(scope="module")
def evaluation(world, tmp_path_factory):
    directory = tmp_path_factory.mktemp("trec") / "made"
    found = evaluate_split(*world, "test", negatives=7, trec_dir=directory)
    return found.graded(CUT_POINTS), directory


def test_every_metric_has_an_interval_around_it_and_a_count_and_files(evaluation, world):
    found, directory = evaluation
    assert list(found.metrics) == list(found.intervals) == list(found.counts) == [*METRICS, *FULL]
    for name, value in found.metrics.items():
        low, high = found.intervals[name]
        assert 0 <= low <= value <= high <= 1
    retrieval_set, _ = world
    for grade, names in ((2, ("P_mr@1", *FULL)), (1, ("MAP", "NDCG@5"))):
        queries = set(retrieval_set.query_rows[retrieval_set.grades >= grade])
        assert {found.counts[name] for name in names} == {len(queries)}
    assert found.counts["P_mr@1"] < found.counts["MAP"] <= 25
    names = sorted(path.name for path in directory.iterdir() if path.stat().st_size)
    assert names == ["full.qrels.trec", "full.run.trec", "qrels.trec", "run.trec"]


def test_scores_and_confusion_cover_every_pair(evaluation, world):
    retrieval_set, retriever = world
    found, _ = evaluation
    lists = candidate_lists(retrieval_set, "test", negatives=7, seed=NEGATIVES_SEED)
    scores = retriever.score(lists)
    for grade in range(3):
        of_grade = scores[lists.grades == grade]
        np.testing.assert_array_equal(found.scores_by_grade[grade], of_grade)
        expected, _ = np.histogram(of_grade, [-np.inf, *CUT_POINTS.scores, np.inf])
        np.testing.assert_array_equal(found.confusion[grade], expected)


def test_hits_are_the_first_ten_of_each_query_and_graded_by_score_and_share(evaluation, world):
    retrieval_set, retriever = world
    found, _ = evaluation
    (ranking,) = retriever.rank(retrieval_set.queries_in("test"), 10)
    grades = ranking.grades(retrieval_set)
    np.testing.assert_array_equal(found.hits.scores, ranking.scores)
    np.testing.assert_array_equal(found.hits.grades, grades)
    first = ranking.scores[:, :1]
    shares = np.where(first > 0, ranking.scores / np.where(first == 0, 1, first), 0)
    by_share = np.digitize(shares, CUT_POINTS.shares, right=True)
    by_score = np.digitize(ranking.scores, CUT_POINTS.scores, right=True)
    for grade in range(3):
        np.testing.assert_array_equal(found.shares_by_grade()[grade], shares[grades == grade])
        of_grade = np.minimum(by_share, by_score)[grades == grade]
        expected = np.bincount(of_grade, minlength=3)
        np.testing.assert_array_equal(found.hit_confusion[grade], expected)


def test_metrics_json_tells_how_well_grades_are_predicted_given_cut_points(evaluation, world):
    found, _ = evaluation
    content = metrics_content({"test": found}, 7)
    of_lists, of_hits = grade_metrics(found.confusion), grade_metrics(found.hit_confusion)
    assert content["grades"] == {"test": {"candidate lists": of_lists, "hits": of_hits}}
    assert content["rules"].items() >= RULES.items()
    assert "7 sampled ones" in content["rules"]["lists"]
    assert f"seed {NEGATIVES_SEED}" in content["rules"]["lists"]
    assert "first 10 documents" in content["rules"]["grades"]
    without = evaluate_split(*world, "test", negatives=7)
    assert (without.metrics, without.intervals) == (found.metrics, found.intervals)
    assert without.graded(None) is without
    content = metrics_content({"test": without}, 7)
    assert content["confusion"] == content["grades"] == {}
    assert "grades" not in content["rules"]


def test_a_query_without_a_token_and_one_without_a_relevant_document(small_set):
    retriever = vectors_with_ties(small_set, seed=3)
    retriever.queries[5] = 0
    test = evaluate_split(small_set, retriever, "test", negatives=3)
    assert set(test.counts.values()) == {2}
    validation = evaluate_split(small_set, retriever, "validation", negatives=3)
    # q4 has a document of grade 1, q8 has none; neither has one of grade 2.
    assert validation.counts["MAP"] == 1
    assert validation.counts["P_mr@1"] == validation.counts["full/MRR@10"] == 0
    assert validation.metrics["P_mr@1"] == 0
    assert validation.intervals["P_mr@1"] == (0, 0)


class ListScorer:
    """A scorer that cannot rank the collection: a retriever turned upside down."""

    def __init__(self, retriever):
        self._retriever = retriever

    def score(self, lists):
        return -self._retriever.score(lists)


def test_a_scorer_that_is_no_retriever_is_measured_on_candidate_lists_alone(world, tmp_path):
    retrieval_set, retriever = world
    scorer = ListScorer(retriever)
    found = evaluate_splits(retrieval_set, scorer, ["test"], negatives=7, trec_dir=tmp_path)
    assert list(found["test"].metrics) == list(METRICS)
    files = sorted(path.name for path in (tmp_path / "test").iterdir())
    assert files == ["qrels.trec", "run.trec"]
    assert "full" not in metrics_content(found, 7)["rules"]
    assert found["test"].hits is None
    assert found["test"].graded(CUT_POINTS).hit_confusion is None


def test_a_scorer_is_measured_over_the_top_ranks_of_a_first_stage(evaluation, world, tmp_path):
    retrieval_set, retriever = world
    reranker = ListScorer(retriever)
    two_stages = TwoStageRetriever(retriever, reranker, retrieval_set, ranks=10)
    found = evaluate_split(retrieval_set, two_stages, "test", negatives=7, trec_dir=tmp_path)
    alone = evaluate_split(retrieval_set, reranker, "test", negatives=7)
    assert {name: found.metrics[name] for name in METRICS} == alone.metrics
    first, _ = evaluation
    # The same ten documents are found, in another order.
    assert found.metrics["full/Recall@10"] == first.metrics["full/Recall@10"]
    assert found.metrics["full/Recall@100"] == first.metrics["full/Recall@10"]
    assert found.metrics["full/Recall@1"] != first.metrics["full/Recall@1"]
    assert len((tmp_path / "full.run.trec").read_text().splitlines()) == 25 * 10


def test_an_empty_split_is_an_error_with_a_remedy(world):
    message = r"no query of the train split .*\. Move some to this split"
    with pytest.raises(InputError, match=message):
        evaluate_split(*world, "train", negatives=3)
