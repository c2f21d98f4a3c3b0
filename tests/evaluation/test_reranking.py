"""Scores of pairs, metrics of candidate lists, predicted against true grades."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.oracles import metrics as oracle
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.evaluation import reranking as ranking
from tf_smoothclir.evaluation.encoding import EncodedSet
from tf_smoothclir.evaluation.reranking import confusion_matrix, list_metrics, score_lists
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity


@pytest.mark.parametrize("pairs_per_chunk", [1 << 17, 7])
def test_scores_are_the_smooth_cosine_of_the_raw_tower_vectors(
    small_set, monkeypatch, pairs_per_chunk
):
    monkeypatch.setattr(ranking, "_PAIRS_PER_CHUNK", pairs_per_chunk)
    epsilon, generator = 0.5, np.random.default_rng(1)
    raw = [generator.normal(size=(n, 4)).astype(np.float32) for n in (8, 12)]
    raw[0][0] = 0  # a query without a token
    normal = [v / (np.linalg.norm(v, axis=1, keepdims=True) + epsilon) for v in raw]
    lists = candidate_lists(small_set, "train", negatives=6, seed=1)
    found = score_lists(EncodedSet(*normal, np.arange(12)), lists)
    queries, documents = raw[0][lists.pair_query_rows], raw[1][lists.document_rows]
    layer = SmoothCosineSimilarity(epsilon)
    np.testing.assert_allclose(found, layer([queries, documents]), rtol=1e-5, atol=1e-7)
    assert found.dtype == np.float32
    assert not found[lists.pair_query_rows == 0].any()


@pytest.mark.parametrize("grades", [2, 3, 4])
def test_list_metrics_equal_the_twin_with_ties(grades):
    retrieval_set = random_set(30, 60, seed=2, grades=grades)
    encoded = vectors_with_ties(retrieval_set, seed=3)
    lists = candidate_lists(retrieval_set, "test", negatives=10, seed=4)
    scores = score_lists(encoded, lists)
    found = list_metrics(encoded, lists, scores, grades)
    for i, (begin, end) in enumerate(zip(lists.offsets[:-1], lists.offsets[1:])):
        part = slice(begin, end)
        assert len(set(scores[part].tolist())) < end - begin  # there are ties
        ties = encoded.tie_order[lists.document_rows[part]]
        order = oracle.ranking(scores[part].tolist(), lists.grades[part].tolist(), ties)
        for name, expected in oracle.seven_metrics(order, grades).items():
            expected = np.nan if expected is None else expected
            assert found[name][i] == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_a_model_that_says_nothing_is_not_favoured_by_the_judged_documents_standing_first():
    # Each list begins with its judged documents; with all vectors zero, file order would find them.
    retrieval_set = random_set(400, 300, seed=5)
    encoded = vectors_with_ties(retrieval_set, seed=6)
    silent = dataclasses.replace(encoded, queries=np.zeros_like(encoded.queries))
    lists = candidate_lists(retrieval_set, "test", negatives=40, seed=7)
    scores = score_lists(silent, lists)
    assert not scores.any()
    found = list_metrics(silent, lists, scores, 3)["P_r@5"]
    relevant = np.add.reduceat(lists.grades >= 1, lists.offsets[:-1])
    chance = (relevant / np.diff(lists.offsets))[relevant > 0]
    assert np.nanmean(found) == pytest.approx(chance.mean(), abs=4 * 0.13 / np.sqrt(len(chance)))


def test_confusion_matrix_by_hand():
    found = confusion_matrix(np.array([0, 0, 0, 1, 2]), np.array([0, 2, 0, 1, 1]), 3)
    np.testing.assert_array_equal(found, [[2, 0, 1], [0, 1, 0], [0, 1, 0]])


def test_confusion_matrix_keeps_its_size_when_a_grade_is_absent():
    np.testing.assert_array_equal(
        confusion_matrix(np.array([0]), np.array([0]), 2), [[1, 0], [0, 0]]
    )
