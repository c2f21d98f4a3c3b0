"""Metrics of candidate lists, and predicted against true grades."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from tests.oracles import metrics as oracle
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.evaluation.metrics import confusion_matrix, list_metrics


@pytest.mark.parametrize("grades", [2, 3, 4])
def test_list_metrics_equal_the_oracle_with_ties(grades):
    retrieval_set = random_set(30, 60, seed=2, grades=grades)
    retriever = vectors_with_ties(retrieval_set, seed=3)
    lists = candidate_lists(retrieval_set, "test", negatives=10, seed=4)
    scores = retriever.score(lists)
    found = list_metrics(retrieval_set, lists, scores)
    for i, (begin, end) in enumerate(zip(lists.offsets[:-1], lists.offsets[1:])):
        part = slice(begin, end)
        assert len(set(scores[part].tolist())) < end - begin  # there are ties
        ties = retrieval_set.tie_order[lists.document_rows[part]]
        order = oracle.ranking(scores[part].tolist(), lists.grades[part].tolist(), ties)
        for name, expected in oracle.seven_metrics(order, grades).items():
            expected = np.nan if expected is None else expected
            assert found[name][i] == pytest.approx(expected, rel=1e-6, nan_ok=True)


def test_equal_scores_are_not_favoured_by_the_judged_documents_coming_first():
    # Each list begins with its judged documents; with all vectors zero, file order would find them.
    retrieval_set = random_set(400, 300, seed=5)
    retriever = vectors_with_ties(retrieval_set, seed=6)
    silent = dataclasses.replace(retriever, queries=np.zeros_like(retriever.queries))
    lists = candidate_lists(retrieval_set, "test", negatives=40, seed=7)
    scores = silent.score(lists)
    assert not scores.any()
    found = list_metrics(retrieval_set, lists, scores)["P_r@5"]
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
