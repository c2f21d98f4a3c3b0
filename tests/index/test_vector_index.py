"""Kinds of index: chosen by size, close to the exact ranking, reproducible."""

import numpy as np
import pytest

from tests.index.helpers import DIM, recall_of
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import KINDS, LARGEST_FLAT, IndexSettings, VectorIndex

SIZE = 10_000


@pytest.fixture(scope="module")
def vectors():
    """Vectors of documents in ten clusters."""
    generator = np.random.default_rng(5)
    topics = generator.normal(size=(10, DIM))
    made = topics[generator.integers(10, size=SIZE)]
    made = made + 0.7 * generator.normal(size=made.shape)
    return (made / (1 + np.linalg.norm(made, axis=1, keepdims=True))).astype(np.float32)


@pytest.fixture(scope="module")
def ranker_of(vectors):
    return lambda index: Ranker(index, vectors, np.arange(SIZE, dtype=np.uint64))


@pytest.fixture(scope="module")
def asked(vectors):
    generator = np.random.default_rng(6)
    near = vectors[generator.integers(SIZE, size=50)]
    return (near + 0.05 * generator.normal(size=near.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def exact(vectors, asked):
    """`[queries, documents]` float64: all scores, by one matrix product."""
    return asked.astype(np.float64) @ vectors.astype(np.float64).T


@pytest.fixture(scope="module")
def built(vectors):
    settings = {kind: IndexSettings(kind).resolved(SIZE) for kind in KINDS}
    return {kind: VectorIndex.build(chosen, vectors) for kind, chosen in settings.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 20, SIZE])
def test_no_document_is_nearer_than_the_nearest_ones_say(
    asked, exact, built, ranker_of, kind, number
):
    for query, row in zip(asked[:5], exact):
        near = ranker_of(built[kind]).nearest(query, number)
        assert (np.abs(near.scores - row[near.positions]) <= near.error).all()
        others = np.delete(row, near.positions)
        if kind in ("flat", "int8"):
            assert len(near.positions) == number
            assert others.max(initial=-np.inf) <= near.others


@pytest.mark.parametrize(
    ("settings", "documents", "kind", "effort"),
    [
        (IndexSettings(), 1, "flat", 0),
        (IndexSettings(), LARGEST_FLAT, "flat", 0),
        (IndexSettings(), LARGEST_FLAT + 1, "hnsw", 32),
        (IndexSettings("hnsw"), 9, "hnsw", 32),
        (IndexSettings("hnsw"), 2_000_000, "hnsw", 32),
        (IndexSettings("hnsw"), 2_000_001, "hnsw", 64),
        (IndexSettings("hnsw", search_effort=7), 9, "hnsw", 7),
    ],
)
def test_kind_and_effort_are_chosen_by_the_number_of_documents(settings, documents, kind, effort):
    found = settings.resolved(documents)
    assert (found.kind, found.search_effort) == (kind, effort)


@pytest.mark.parametrize(
    ("kind", "least"), [("flat", 1.0), ("int8", 1.0), ("binary", 0.5), ("hnsw", 0.97)]
)
def test_best_documents_are_found_as_the_recall_says(asked, exact, built, ranker_of, kind, least):
    shares, ranker = [], ranker_of(built[kind])
    for (positions, found), row in zip(ranker.rank(asked, 10), exact):
        np.testing.assert_allclose(found, row[positions], atol=1e-7)
        assert (np.diff(found) <= 0).all()
        shares.append(len(set(positions) & set(np.argsort(-row)[:10])) / 10)
    assert np.mean(shares) >= least
    assert recall_of(ranker, asked, ranker.vectors) == pytest.approx(np.mean(shares), abs=1e-9)


def test_saved_index_ranks_as_before(asked, built, tmp_path):
    built["hnsw"].save(tmp_path / "faiss")
    with open(tmp_path / "faiss", "rb") as file:
        loaded = VectorIndex.load(file, built["hnsw"].settings)
    for first, second in zip(built["hnsw"].search(asked, 9), loaded.search(asked, 9)):
        np.testing.assert_array_equal(first, second)
