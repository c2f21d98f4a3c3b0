"""An index on disk ranks exactly; its kinds are chosen by size and close to the exact ranking."""

import shutil

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.index.helpers import (
    DIM,
    brute_force,
    build,
    document,
    found_by,
    hits_by,
    queries,
    recall_of,
    vector_of,
)
from tests.training.test_checkpoints import flip
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.index_settings import KINDS, LARGEST_FLAT, IndexSettings
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import BitScan, Int8Scan, VectorIndex
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors
from tf_smoothclir.utils.errors import InputError

NUMBERS = st.floats(-1, 1, width=32)
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


@given(arrays(np.float32, (6, 5), elements=NUMBERS), arrays(np.float32, 5, elements=NUMBERS))
def test_no_inner_product_is_further_off_than_it_says(vectors, query):
    found = Int8Vectors.of(vectors)
    exact = vectors.astype(np.float64) @ query
    off = np.abs(found[:].astype(np.float64) @ query - exact)
    assert (off <= np.abs(query) @ found.scales / 2 * (1 + 1e-5) + 1e-7).all()
    scan = Int8Scan(found)
    scores, positions = scan.search(query[None], len(vectors))
    assert (np.abs(scores[0] - exact[positions[0]]) <= scan.error(query)).all()


@pytest.mark.parametrize("dim", [1, 15, 16, 17, 64])
def test_scans_agree_with_the_formulas(dim):
    drawn = np.random.default_rng(0).normal(size=(54, dim)).astype(np.float32) / dim
    vectors, asked = Int8Vectors.of(drawn[:50]), drawn[50:]
    scores, positions = Int8Scan(vectors).search(asked, 50)
    weights = asked * vectors.scales
    steps = np.abs(weights).max(axis=1, keepdims=True) / 127
    expected = np.rint(weights / steps) * steps @ vectors.codes.T.astype(np.float64)
    np.testing.assert_allclose(scores, np.take_along_axis(expected, positions, 1), 1e-5, 1e-8)
    assert (np.diff(scores) <= 0).all()
    shared, positions = BitScan(vectors).search(asked, 50)
    different = ((asked > 0)[:, None] != (vectors.codes > 0)).sum(axis=2)
    np.testing.assert_array_equal(-shared, np.take_along_axis(different, positions, 1))


@pytest.mark.parametrize("kind", ["int8", "binary"])
def test_an_index_ranks_by_int8_vectors_and_keeps_no_others(tmp_path, kind):
    manifest = build(tmp_path / "index", TEXTS, settings=IndexSettings(kind))
    found = {path.name for path in (tmp_path / "index" / "dense").iterdir()}
    assert found == {"codes", "scales", "longest"}
    index = DocumentIndex(tmp_path / "index")
    assert manifest.halves["dense"]["recall"]["value"] == pytest.approx(1, abs=0.05)
    assert manifest.halves["dense"]["recall"]["queries"] == len(TEXTS)
    rounded = index.half("dense").vectors[:].astype(np.float64)
    for query in queries(5):  # 300 documents: all of them are candidates
        best = sorted(rounded @ query, reverse=True)[:10]
        np.testing.assert_allclose([score for _, score in found_by(index, query, 10)], best, 1e-6)


def test_recall_is_against_the_vectors_before_they_were_rounded():
    # Rounded to multiples of 1 / 127, all documents but the last are alike.
    vectors = np.array([[0.5 + 1e-4 * n, 0.1] for n in range(20)] + [[1, 0.1]], np.float32)
    rounded = Int8Vectors.of(vectors)
    assert len(np.unique(rounded.codes[:-1], axis=0)) == 1
    hashes = np.arange(len(vectors), dtype=np.uint64)
    ranker = Ranker(VectorIndex.scan(IndexSettings("int8"), rounded), rounded, hashes)
    query = np.array([[0.9, 0.0]], np.float32)
    # It finds the last one and 9 of the others, the first by their hashes: 0 to 8. The exact best
    # are 20 and 11 to 19.
    assert recall_of(ranker, query, vectors) == pytest.approx(0.1)


TEXTS = [document(number) for number in range(300)]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """Kind -> directory of an index of `TEXTS`; read-only."""
    root = tmp_path_factory.mktemp("indexes")
    for kind in ("flat", "hnsw"):
        build(root / kind, TEXTS, settings=IndexSettings(kind))
    return {kind: root / kind for kind in ("flat", "hnsw")}


@pytest.mark.parametrize("depth", [1, 7, 100, len(TEXTS), len(TEXTS) + 1])
def test_flat_ranks_as_brute_force_in_a_batch_and_alone(indexes, depth):
    index, batch = DocumentIndex(indexes["flat"]), queries(300 if depth == 7 else 4)
    together, step = hits_by(index, batch, depth), len(batch) // 4
    for query, results in zip(batch[::step], together[::step]):
        expected = brute_force(TEXTS, query, depth)
        assert found_by(index, query, depth) == expected
        assert [(r.id, r.score) for r in results] == expected


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_documents_come_with_title_text_and_grade(indexes, kind):
    by_id = {text.id: text for text in TEXTS}
    grades = set()
    for row in hits_by(
        DocumentIndex(indexes[kind]), queries(20) * 2, 200
    ):  # scores up to 1 and more
        for result in row:
            assert (result.id, result.title, result.text) == by_id[result.id][:3]
            assert result.grade == (result.score > 0.2) + (result.score > 0.7)
            grades.add(result.grade)
    assert grades == {0, 1, 2}


def test_copies_of_a_text_are_ordered_by_the_hash_of_the_id(tmp_path):
    # More copies than FAISS is asked for, so the first ones by hash are not among its candidates.
    texts = [document(number, "copy" if number % 3 else None) for number in range(300)]
    build(tmp_path / "index", texts)
    index = DocumentIndex(tmp_path / "index")
    for query in [vector_of("copy"), *queries(3)]:
        for depth in (1, 10, 205):
            assert found_by(index, query, depth) == brute_force(texts, query, depth)


@pytest.mark.parametrize("kind", ["flat", "hnsw"])
def test_zero_and_no_query_have_no_answer_and_one_of_another_length_is_refused(indexes, kind):
    index = DocumentIndex(indexes[kind])
    assert found_by(index, np.zeros(DIM, np.float32), 10) == []
    assert hits_by(index, np.zeros((0, DIM)), 5) == []
    with pytest.raises(InputError, match="they have 5 numbers, those of the index 8"):
        hits_by(index, np.zeros((2, 5)), 5)


def test_damaged_file_is_named(indexes, tmp_path):
    index_dir = shutil.copytree(indexes["hnsw"], tmp_path / "index")
    flip(index_dir / "documents" / "id.offsets")
    with pytest.raises(InputError, match=r"index: it is damaged: documents/id\.offsets is not the"):
        DocumentIndex(index_dir)
