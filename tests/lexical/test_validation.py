"""The one number that chooses, against the metrics of an evaluation."""

import numpy as np
import pytest

from tests.small_world import SmallWorld
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.evaluation.evaluate import evaluate_split
from tf_smoothclir.lexical import retriever
from tf_smoothclir.lexical.retriever import RowRetriever
from tf_smoothclir.lexical.validation import Validation, is_better

QUERIES, DOCUMENTS = 12, 60


@pytest.fixture(scope="module")
def retrieval_set():
    """Each query has a mate and a related document."""
    queries = range(QUERIES)
    world = SmallWorld(
        queries=[(f"q{query}", "") for query in queries],
        documents=[(f"d{document}", "") for document in range(DOCUMENTS)],
        judgments=[(f"q{q}", f"d{q + step}", 2 - step) for q in queries for step in (0, 1)],
        splits={f"q{query}": "validation" for query in queries},
    )
    return RetrievalSet.load(world)


def scores_of(retrieval_set, strength, seed=4):
    random = np.random.default_rng(seed)
    scores = random.random((QUERIES, DOCUMENTS)).astype(np.float32)
    scores[retrieval_set.query_rows, retrieval_set.document_rows] += strength * retrieval_set.grades
    return scores.__getitem__


@pytest.mark.parametrize("strength", [0, 0.2, 1])
@pytest.mark.parametrize("queries_at_once", [1, 5, 100])
def test_it_is_the_mean_of_two_metrics(retrieval_set, strength, queries_at_once, monkeypatch):
    monkeypatch.setattr(retriever, "_SCORES_AT_ONCE", DOCUMENTS * queries_at_once)
    rows = scores_of(retrieval_set, strength)
    ranker = RowRetriever(rows, retrieval_set.tie_order)
    metrics = evaluate_split(retrieval_set, ranker, "validation", negatives=40).metrics
    expected = [metrics[name] for name in ("NDCG@5", "full/MRR@10", "full/Recall@1")]
    assert Validation(retrieval_set)(rows) == pytest.approx(np.mean(expected[:2]))
    (found,) = Validation(retrieval_set, None).per_query(lambda query_rows: [rows(query_rows)])
    assert found.shape == (QUERIES, 3)
    np.testing.assert_allclose(found.mean(axis=0), expected, rtol=1e-6)
    deviation = np.mean([rows(query).std() for query in range(QUERIES)])
    assert Validation(retrieval_set).deviation(rows) == pytest.approx(deviation)


def test_variants_have_the_measures_that_each_has_alone(retrieval_set):
    strengths = (0, 1, 0.3)
    rows = [scores_of(retrieval_set, strength) for strength in strengths]
    validation = Validation(retrieval_set)
    found = validation.of_variants(lambda query_rows: (one(query_rows) for one in rows))
    assert found == [validation(one) for one in rows]
    assert found[0] < found[2] < found[1]


def test_a_document_that_ties_with_all_others_is_the_last_and_fewer_queries_are_a_sample(
    retrieval_set,
):
    asked = []

    def silent(rows):
        asked.extend(rows)
        return np.zeros((len(rows), DOCUMENTS), np.float32)

    found = Validation(retrieval_set)(silent)
    assert found < 0.2  # what NDCG@5 finds among 42 documents by the tie rule
    asked.clear()
    Validation(retrieval_set, 5)(silent)
    assert len(set(asked)) == len(asked) == 5


def test_a_query_without_a_relevant_document_has_no_rank(small_set):
    # q4 has a document of grade 1 as its best, q8 none.
    scores = np.zeros((len(small_set.query_ids), len(small_set.document_ids)), np.float32)
    scores[:, small_set.document_ids.index("d8")] = 1
    assert Validation(small_set)(scores.__getitem__) == pytest.approx((1 + 1 / 2) / 2)


BETTER = np.full((100, 3), 0.1)  # what each metric gains for each query


@pytest.mark.parametrize(
    ("gains", "expected"),
    [
        (BETTER, True),
        (-BETTER, False),
        (np.zeros((100, 3)), False),  # as good is no reason to ask both halves
        # 0.1 with a standard deviation of 1 over 100 queries: just the standard error.
        (np.outer(np.tile([1.1, -0.9], 50), [1, 1, 1]), False),
        (np.outer(np.tile([0.6, -0.4], 50), [1, 1, 1]), True),
        (BETTER * [3, 1, -1], False),  # mates fall from the first rank
        (BETTER * [3, -1, 0], False),
        (BETTER * [3, 1, 0], True),
        # Three mates that leave the first rank while two others reach it are chance; nine are not.
        (BETTER * [1, 1, 0] + np.outer(np.repeat([-1, 1, 0], [3, 2, 95]), [0, 0, 1]), True),
        (BETTER * [1, 1, 0] + np.outer(np.repeat([-1, 1, 0], [9, 2, 89]), [0, 0, 1]), False),
        (np.where(np.arange(100)[:, None] < 50, BETTER, np.nan), True),
        (np.full((100, 3), np.nan), False),  # no query has a relevant document
    ],
)
def test_better_is_beyond_chance_and_worse_by_no_metric(gains, expected):
    other = np.random.default_rng(3).random((100, 3))
    assert is_better(other + gains, other) is expected


def test_another_metric_may_count_without_being_guarded():
    """It may fall by less than the others rise: (0.1 + 0.1 - falls) / 3 is above 0, or not."""
    other = np.random.default_rng(3).random((100, 4))
    for falls, expected in ((0.05, True), (0.3, False)):
        better = other + np.array([0.1, 0.1, 0, -falls])
        assert is_better(better, other, counted=(0, 1, 3)) is expected
        assert is_better(better, other)
