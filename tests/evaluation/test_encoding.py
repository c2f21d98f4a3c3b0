"""Vectors of a whole set: right, in row order, with the current weights."""

from __future__ import annotations

import numpy as np
import pytest

from tests.small_world import DOCUMENTS
from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.evaluation import encoding
from tf_smoothclir.evaluation.encoding import Encoder
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

EPSILON = 0.5


@pytest.fixture(scope="module")
def model(tokenized_set):
    towers = [
        AveragePoolingTower(len(tokenized_set.vocabulary(r)), 3) for r in ("query", "document")
    ]
    model = TwoTower(*towers, SmoothCosineSimilarity(EPSILON))
    model.build()
    return model


@pytest.fixture(scope="module")
def encoder(model, tokenized_set):
    return Encoder(model, tokenized_set)


def expected_vectors(tower, store):
    """tanh of the mean word vector, divided by its norm plus epsilon."""
    table = tower.embeddings.numpy().astype(np.float64)
    rows = []
    for row in range(len(store)):
        mean = table[store[row]].mean(axis=0) if len(store[row]) else np.zeros(table.shape[1])
        vector = np.tanh(mean)
        rows.append(vector / (np.linalg.norm(vector) + EPSILON))
    return np.array(rows)


def check(encoded, model, tokenized_set):
    for vectors, tower, role in (
        (encoded.queries, model.query_tower, "query"),
        (encoded.documents, model.document_tower, "document"),
    ):
        assert vectors.dtype == np.float32
        expected = expected_vectors(tower, tokenized_set.tokens(role))
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)


def test_every_row_is_the_smooth_normalised_vector_of_its_text(encoder, model, tokenized_set):
    check(encoder(), model, tokenized_set)


def test_texts_without_a_token_are_zero_vectors(encoder):
    encoded = encoder()
    assert not encoded.queries[5].any()
    assert np.flatnonzero(~encoded.documents.any(axis=1)).tolist() == [0, 11]


def test_batches_do_not_change_a_vector(encoder, model, tokenized_set, monkeypatch):
    monkeypatch.setattr(encoding, "_TEXTS_PER_BATCH", 5)
    check(encoder(), model, tokenized_set)


def test_the_weights_of_now_are_used(encoder, model, tokenized_set):
    before = encoder()
    for tower in (model.query_tower, model.document_tower):
        tower.embeddings.assign(tower.embeddings * -2)
    after = encoder()
    assert (before.queries[0] * after.queries[0] < 0).all()
    check(after, model, tokenized_set)


def test_tie_order_is_the_rank_by_hash_of_the_document_id(encoder):
    ids = list(DOCUMENTS)
    by_tie_order = [ids[row] for row in np.argsort(encoder().tie_order)]
    assert by_tie_order == sorted(ids, key=lambda id_: int(hash_ids([id_])[0]))
