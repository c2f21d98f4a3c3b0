"""Kinds of index: chosen by size, close to the exact ranking, reproducible."""

import numpy as np
import pytest

from tests.index.helpers import DIM
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.segments import Segments, SegmentWriter
from tf_smoothclir.index.vector_index import (
    LARGEST_FLAT,
    LARGEST_HNSW,
    SMALLEST_IVF_PQ,
    IndexSettings,
    VectorIndex,
    selector,
)
from tf_smoothclir.utils.errors import InputError

SIZE = SMALLEST_IVF_PQ


@pytest.fixture(scope="module")
def segments(tmp_path_factory):
    """Two segments of vectors in ten clusters."""
    generator = np.random.default_rng(5)
    topics = generator.normal(size=(10, DIM))
    paths = []
    for part in range(2):
        vectors = topics[generator.integers(10, size=SIZE // 2)]
        vectors = vectors + 0.7 * generator.normal(size=vectors.shape)
        vectors /= 1 + np.linalg.norm(vectors, axis=1, keepdims=True)
        paths.append(tmp_path_factory.mktemp("segment"))
        with SegmentWriter(paths[-1]) as writer:
            ids = [Text(f"{part}-{n}", "", "") for n in range(SIZE // 2)]
            writer.add(ids, vectors.astype(np.float32))
    return Segments(paths, DIM)


@pytest.fixture(scope="module")
def asked(segments):
    """Query vectors close to those of documents."""
    generator = np.random.default_rng(6)
    vectors = segments.vectors(generator.integers(SIZE, size=50))
    return (vectors + 0.05 * generator.normal(size=vectors.shape)).astype(np.float32)


@pytest.fixture(scope="module")
def built(segments):
    settings = {kind: IndexSettings(kind).resolved(SIZE) for kind in ("flat", "hnsw", "ivf_pq")}
    return {kind: VectorIndex.build(chosen, segments, DIM) for kind, chosen in settings.items()}


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


def scores_by_hand(segments, asked, removed=()):
    """`[queries, documents]` float64, by one matrix product."""
    scores = asked.astype(np.float64) @ segments.vectors(np.arange(SIZE)).astype(np.float64).T
    scores[:, list(removed)] = -np.inf
    return scores


@pytest.mark.parametrize(("kind", "least"), [("flat", 1.0), ("hnsw", 0.97), ("ivf_pq", 0.9)])
@pytest.mark.parametrize("removed", [(), range(0, SIZE, 5)])
def test_best_documents_are_found_among_the_living(segments, asked, built, kind, least, removed):
    alive = np.ones(SIZE, bool)
    alive[list(removed)] = False
    scores = scores_by_hand(segments, asked, removed)
    ranked = Ranker(built[kind], segments, alive).rank(asked, 10)
    shares = []
    for (positions, found), row in zip(ranked, scores):
        assert alive[positions].all()
        np.testing.assert_allclose(found, row[positions], atol=1e-7)
        assert (np.diff(found) <= 0).all()
        shares.append(len(set(positions) & set(np.argsort(-row)[:10])) / 10)
    assert np.mean(shares) >= least


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf_pq"])
@pytest.mark.parametrize("removed", [(), range(0, SIZE, 5)])
def test_recall_agrees_with_brute_force(segments, asked, built, kind, removed):
    alive = np.ones(SIZE, bool)
    alive[list(removed)] = False
    ranker = Ranker(built[kind], segments, alive)
    best = np.argsort(-scores_by_hand(segments, asked, removed), axis=1)[:, :10]
    found = [set(positions) for positions, _ in ranker.rank(asked, 10)]
    expected = np.mean([len(row & set(exact)) / 10 for row, exact in zip(found, best)])
    assert ranker.recall(asked) == pytest.approx(expected, abs=1e-9)


def test_recall_of_a_bad_index_is_low(segments, asked):
    lazy = VectorIndex.build(IndexSettings("hnsw", 2, search_effort=1), segments, DIM)
    assert 0 < Ranker(lazy, segments, np.ones(SIZE, bool)).recall(asked) < 0.9


@pytest.mark.parametrize("kind", ["hnsw", "ivf_pq"])
def test_saved_index_ranks_as_before(segments, asked, built, kind, tmp_path):
    built[kind].save(tmp_path / "faiss")
    loaded = VectorIndex.load(tmp_path / "faiss", built[kind].settings)
    for first, second in zip(built[kind].search(asked, 9, None), loaded.search(asked, 9, None)):
        np.testing.assert_array_equal(first, second)


def test_training_of_ivf_pq_is_reproducible(segments, built, tmp_path):
    again = VectorIndex.build(built["ivf_pq"].settings, segments, DIM)
    for name, index in (("first", built["ivf_pq"]), ("again", again)):
        index.save(tmp_path / name)
    assert (tmp_path / "first").read_bytes() == (tmp_path / "again").read_bytes()


def test_selector_selects_the_documents_that_are_not_removed():
    alive = np.zeros(19, bool)
    alive[[0, 3, 8, 18]] = True
    chosen = selector(alive)
    assert [n for n in range(19) if chosen.is_member(n)] == [0, 3, 8, 18]
    assert selector(np.ones(19, bool)) is None


def test_positions_are_found_by_id_among_the_living(segments):
    alive = np.ones(SIZE, bool)
    alive[SIZE // 2 + 3] = False
    found = segments.positions_of(["0-7", "1-0", "1-3", "nobody"], alive)
    assert found.tolist() == [7, SIZE // 2, -1, -1]
