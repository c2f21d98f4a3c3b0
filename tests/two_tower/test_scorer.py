"""The scorer of two towers: vectors of a whole set, scores of pairs, ranking by brute force."""

import numpy as np
import pytest

from tests.oracles import maths
from tests.small_world import random_set, vectors_with_ties
from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.ops import top_k
from tf_smoothclir.protocols.scorer import Ranking
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.two_tower import scorer as scorer_module
from tf_smoothclir.two_tower.model import TwoTower
from tf_smoothclir.two_tower.scorer import SetEncoder
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

EPSILON = 0.5


def check(found, model, tokenized_set):
    for role, vectors in (("query", found.queries), ("document", found.documents)):
        assert vectors.dtype == np.float32
        table = getattr(model, f"{role}_tower").embeddings.numpy().astype(np.float64)
        texts = tokenized_set.tokens(role)
        means = [table[text].mean(axis=0) if len(text) else np.zeros(3) for text in texts]
        expected = [maths.smooth_normalize(np.tanh(mean), EPSILON) for mean in means]
        np.testing.assert_allclose(vectors, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("texts_per_batch", [5, 1000])
def test_rows_are_vectors_by_the_current_weights(texts_per_batch, tokenized_set, monkeypatch):
    towers = [AveragePoolingTower(len(tokenized_set.vocabulary(role)), 3) for role in ROLES]
    model = TwoTower(*towers, SmoothCosineSimilarity(EPSILON))
    model.build()
    monkeypatch.setattr(scorer_module, "_TEXTS_PER_BATCH", texts_per_batch)
    encoder = SetEncoder(model, tokenized_set)
    before = encoder()
    check(before, model, tokenized_set)
    assert before.tie_order is tokenized_set.retrieval_set.tie_order
    assert not before.queries[5].any()  # without a token
    assert np.flatnonzero(~before.documents.any(axis=1)).tolist() == [0, 11]
    for tower in towers:
        tower.embeddings.assign(tower.embeddings * -2)
    after = encoder()
    assert (before.queries[0] * after.queries[0] < 0).all()
    check(after, model, tokenized_set)


@pytest.mark.parametrize("numbers_per_chunk", [1 << 22, 7 * 4, 1])
def test_scores_are_inner_products(small_set, monkeypatch, numbers_per_chunk):
    monkeypatch.setattr(scorer_module, "_NUMBERS_PER_CHUNK", numbers_per_chunk)
    retriever = vectors_with_ties(small_set, seed=1)
    lists = candidate_lists(small_set, "train", negatives=6, seed=1)
    pairs = zip(lists.pair_query_rows, lists.document_rows)
    found = retriever.score(lists)
    assert found.dtype == np.float32
    assert found.tolist() == [retriever.queries[q] @ retriever.documents[d] for q, d in pairs]


@pytest.mark.parametrize("depth", [1, 5, 70, 100])
@pytest.mark.parametrize(
    ("documents_per_chunk", "scores_per_chunk"), [(1 << 17, 1 << 25), (16, 70)]
)
def test_ranking_is_brute_force(monkeypatch, depth, documents_per_chunk, scores_per_chunk):
    monkeypatch.setattr(top_k, "DOCUMENTS_PER_CHUNK", documents_per_chunk)
    monkeypatch.setattr(scorer_module, "DOCUMENTS_PER_CHUNK", documents_per_chunk)
    monkeypatch.setattr(scorer_module, "_SCORES_PER_CHUNK", scores_per_chunk)
    retriever = vectors_with_ties(random_set(17, 70, seed=1), seed=2)
    retriever.queries[5] = 0  # all documents have the same score: their order is that of the hashes
    queries = np.array([16, 3, 4, 5, 0, 11, 12, 13])
    chunks = list(retriever.rank(queries, depth))
    assert len(chunks) == (1 if scores_per_chunk > 70 * 8 else 2)
    top = Ranking.joined(chunks)
    assert top.document_rows.shape == top.scores.shape == (8, min(depth, 70))
    np.testing.assert_array_equal(top.query_rows, queries)
    for i, query in enumerate(queries):
        scores = retriever.documents @ retriever.queries[query]  # of eighths: exact
        rows = sorted(range(70), key=lambda row: (-scores[row], retriever.tie_order[row]))[:depth]
        assert top.document_rows[i].tolist() == rows
        np.testing.assert_array_equal(top.scores[i], scores[rows])
