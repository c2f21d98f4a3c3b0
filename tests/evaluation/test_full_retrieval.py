"""Ranking the whole collection: brute force, chunks, ties, figures by hand."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.evaluation import full_retrieval as retrieval
from tf_smoothclir.evaluation.full_retrieval import (
    TopDocuments,
    retrieval_metrics,
    top_documents,
)
from tf_smoothclir.ops import top_k


@pytest.fixture(scope="module")
def wide_set():
    return random_set(17, 70, seed=1)


@pytest.fixture(scope="module")
def encoded(wide_set):
    return vectors_with_ties(wide_set, seed=2)


def brute_force(encoded, query, depth):
    """Rows of the best documents by (score, hash of the id), in exact arithmetic."""
    scores = encoded.documents.astype(np.float64) @ encoded.queries[query].astype(np.float64)
    rows = sorted(range(len(scores)), key=lambda row: (-scores[row], encoded.tie_order[row]))
    return rows[:depth], scores[rows[:depth]]


@pytest.mark.parametrize("depth", [1, 5, 70, 100])
@pytest.mark.parametrize(
    ("documents_per_chunk", "scores_per_chunk"), [(1 << 17, 1 << 25), (16, 70)]
)
def test_top_documents_equals_brute_force_with_ties(
    encoded, monkeypatch, depth, documents_per_chunk, scores_per_chunk
):
    monkeypatch.setattr(top_k, "DOCUMENTS_PER_CHUNK", documents_per_chunk)
    monkeypatch.setattr(retrieval, "_SCORES_PER_CHUNK", scores_per_chunk)
    queries = np.array([16, 3, 4, 5, 0, 11, 12, 13])
    top = top_documents(encoded, queries, depth)
    assert top.document_rows.shape == top.scores.shape == (8, min(depth, 70))
    np.testing.assert_array_equal(top.query_rows, queries)
    for i, query in enumerate(queries):
        rows, scores = brute_force(encoded, query, depth)
        assert top.document_rows[i].tolist() == rows
        np.testing.assert_array_equal(top.scores[i], scores)


def test_vectors_that_all_score_alike_are_ranked_by_hash_and_not_by_file(encoded):
    silent = dataclasses.replace(encoded, queries=np.zeros_like(encoded.queries))
    top = top_documents(silent, np.array([0, 1]), 10)
    by_hash = np.argsort(encoded.tie_order)[:10]
    np.testing.assert_array_equal(top.document_rows, [by_hash, by_hash])


def test_metrics_by_hand(small_set):
    # Mates: q1 d2, q5 d9 and d10; q4 has no document of the highest grade.
    rows = np.array(
        [
            [7, 1, 0, 2],  # q1: d2 second
            [8, 1, 9, 0],  # q5: d9 first, d10 third
            [7, 0, 1, 2],  # q4
            [0, 2, 3, 4],  # q3: its d6 is not found
        ]
    )
    top = TopDocuments(np.array([0, 4, 3, 2]), rows, np.zeros((4, 4), np.float32))
    found = retrieval_metrics(small_set, top, prefix="x/")
    expected = {
        "x/MRR@10": [1 / 2, 1, math.nan, 0],
        "x/Recall@1": [0, 1 / 2, math.nan, 0],
        "x/Recall@10": [1, 2 / 2, math.nan, 0],
        "x/Recall@100": [1, 2 / 2, math.nan, 0],
    }
    assert list(found) == list(expected)
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values)


def test_the_eleventh_place_is_beyond_ten(small_set):
    places = [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 1]  # d2, the mate of q1, is row 1
    top = TopDocuments(np.array([0]), np.array([places]), np.zeros((1, 11), np.float32))
    found = retrieval_metrics(small_set, top)
    assert {name: value.tolist() for name, value in found.items()} == {
        "full/MRR@10": [0],
        "full/Recall@1": [0],
        "full/Recall@10": [0],
        "full/Recall@100": [1],
    }
