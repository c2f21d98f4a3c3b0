"""Kinds of index: chosen by size, close to the exact ranking, reproducible."""

import numpy as np
import pytest

from tests.index.helpers import DIM
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import (
    KINDS,
    LARGEST_FLAT,
    LARGEST_HNSW,
    SMALLEST_IVF_PQ,
    IndexSettings,
    VectorIndex,
)
from tf_smoothclir.utils.errors import InputError

SIZE = SMALLEST_IVF_PQ


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
    """From a `VectorIndex` to its `Ranker`."""
    return lambda index: Ranker(index, vectors, np.arange(SIZE, dtype=np.uint64))


@pytest.fixture(scope="module")
def asked(vectors):
    """Query vectors close to those of documents."""
    generator = np.random.default_rng(6)
    near = vectors[generator.integers(SIZE, size=50)]
    return (near + 0.05 * generator.normal(size=near.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def built(vectors):
    settings = {kind: IndexSettings(kind).resolved(SIZE) for kind in KINDS}
    return {kind: VectorIndex.build(chosen, vectors) for kind, chosen in settings.items()}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 20, SIZE])
def test_no_document_is_nearer_than_the_nearest_ones_say(vectors, asked, built, kind, number):
    ranker = Ranker(built[kind], vectors, np.arange(SIZE, dtype=np.uint64))
    for query, row in zip(asked[:5], scores_by_hand(vectors, asked)):
        near = ranker.nearest(query, number)
        assert (np.abs(near.scores - row[near.positions]) <= near.error).all()
        others = np.delete(row, near.positions)
        if kind in ("flat", "int8"):
            assert len(near.positions) == number
            assert others.max(initial=-np.inf) <= near.others


@pytest.mark.parametrize(
    ("documents", "kind"),
    [
        (1, "flat"),
        (LARGEST_FLAT, "flat"),
        (LARGEST_FLAT + 1, "hnsw"),
        (LARGEST_HNSW, "hnsw"),
        (LARGEST_HNSW + 1, "ivf_pq"),
    ],
)
def test_kind_is_chosen_by_the_number_of_documents(documents, kind):
    assert IndexSettings().resolved(documents).kind == kind
    assert IndexSettings("hnsw").resolved(documents).kind == "hnsw"


@pytest.mark.parametrize(
    ("kind", "documents", "effort"),
    [
        ("flat", 9, 0),
        ("hnsw", 9, 32),
        ("hnsw", 2_000_000, 32),
        ("hnsw", 2_000_001, 64),
        ("ivf_pq", SIZE, 64),
    ],
)
def test_default_effort_depends_on_kind_and_size(kind, documents, effort):
    assert IndexSettings(kind).resolved(documents).search_effort == effort
    assert IndexSettings("hnsw", search_effort=7).resolved(9).search_effort == 7


def test_too_few_documents_for_ivf_pq_are_refused():
    with pytest.raises(InputError, match=f"--index_type=ivf_pq: {SIZE - 1} documents are too few"):
        IndexSettings("ivf_pq").resolved(SIZE - 1)


def scores_by_hand(vectors, asked):
    """`[queries, documents]` float64, by one matrix product."""
    return asked.astype(np.float64) @ vectors.astype(np.float64).T


@pytest.mark.parametrize(
    ("kind", "least"),
    [("flat", 1.0), ("int8", 1.0), ("binary", 0.5), ("hnsw", 0.97), ("ivf_pq", 0.9)],
)
def test_best_documents_are_found(vectors, asked, built, ranker_of, kind, least):
    shares = []
    ranked = ranker_of(built[kind]).rank(asked, 10)
    for (positions, found), row in zip(ranked, scores_by_hand(vectors, asked)):
        np.testing.assert_allclose(found, row[positions], atol=1e-7)
        assert (np.diff(found) <= 0).all()
        shares.append(len(set(positions) & set(np.argsort(-row)[:10])) / 10)
    assert np.mean(shares) >= least


@pytest.mark.parametrize("kind", KINDS)
def test_recall_agrees_with_brute_force(vectors, asked, built, ranker_of, kind):
    ranker = ranker_of(built[kind])
    best = np.argsort(-scores_by_hand(vectors, asked), axis=1)[:, :10]
    found = [set(positions) for positions, _ in ranker.rank(asked, 10)]
    expected = np.mean([len(row & set(exact)) / 10 for row, exact in zip(found, best)])
    assert ranker.recall(asked, vectors) == pytest.approx(expected, abs=1e-9)


def test_recall_of_a_bad_index_is_low(vectors, asked, ranker_of):
    lazy = VectorIndex.build(IndexSettings("hnsw", 2, search_effort=1), vectors)
    assert 0 < ranker_of(lazy).recall(asked, vectors) < 0.9


@pytest.mark.parametrize("kind", ["hnsw", "ivf_pq"])
def test_saved_index_ranks_as_before(asked, built, kind, tmp_path):
    built[kind].save(tmp_path / "faiss")
    with open(tmp_path / "faiss", "rb") as file:
        loaded = VectorIndex.load(file, built[kind].settings)
    for first, second in zip(built[kind].search(asked, 9), loaded.search(asked, 9)):
        np.testing.assert_array_equal(first, second)


def test_training_of_ivf_pq_is_reproducible(vectors, built, tmp_path):
    again = VectorIndex.build(built["ivf_pq"].settings, vectors)
    for name, index in (("first", built["ivf_pq"]), ("again", again)):
        index.save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()
