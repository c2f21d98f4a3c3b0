"""An index on disk ranks exactly; its kinds are chosen by size and close to the exact ranking."""

import shutil
import tempfile
from pathlib import Path

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
    vector_of,
)
from tests.training.test_checkpoints import flip
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.index_kind import FLAT, HNSW, KINDS, LARGEST_FLAT, kind_for, search_effort
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import FlatIndex, HnswIndex
from tf_smoothclir.ops.top_k import recall
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


def opened(vectors):
    with tempfile.TemporaryDirectory() as directory:
        FlatIndex.write(vectors, Path(directory))
        return FlatIndex.opened(Path(directory))


@pytest.fixture(scope="module")
def built(vectors, tmp_path_factory):
    path = tmp_path_factory.mktemp("hnsw") / "faiss"
    HnswIndex.write(vectors, path)
    with open(path, "rb") as file:
        return {FLAT: FlatIndex(*opened(vectors)), HNSW: HnswIndex(file)}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [1, 20, SIZE])
def test_no_document_is_nearer_than_the_nearest_ones_say(
    asked, exact, built, ranker_of, kind, number
):
    for query, row in zip(asked[:5], exact):
        near = ranker_of(built[kind]).nearest(query, number)
        assert (np.abs(near.scores - row[near.positions]) <= near.error).all()
        others = np.delete(row, near.positions)
        if kind == FLAT:
            assert len(near.positions) == number
            assert others.max(initial=-np.inf) <= near.others


def test_kind_and_effort_are_chosen_by_the_number_of_documents():
    assert [kind_for(n) for n in (1, LARGEST_FLAT, LARGEST_FLAT + 1)] == [FLAT, FLAT, HNSW]
    assert kind_for(9, HNSW) == HNSW
    assert [search_effort(n) for n in (9, 2_000_000, 2_000_001)] == [32, 32, 64]


@pytest.mark.parametrize(("kind", "least"), [(FLAT, 1.0), (HNSW, 0.97)])
def test_best_documents_are_found_as_the_recall_says(asked, exact, built, ranker_of, kind, least):
    shares, ranker = [], ranker_of(built[kind])
    for (positions, found), row in zip(ranker.rank(asked, 10), exact):
        np.testing.assert_allclose(found, row[positions], atol=1e-7)
        assert (np.diff(found) <= 0).all()
        shares.append(len(set(positions) & set(np.argsort(-row)[:10])) / 10)
    assert np.mean(shares) >= least
    found = recall(asked, ranker.vectors, (rows for rows, _ in ranker.rank(asked, 10)), 10)
    assert found == pytest.approx(np.mean(shares), abs=1e-9)


@given(arrays(np.float32, (6, 5), elements=NUMBERS), arrays(np.float32, 5, elements=NUMBERS))
def test_no_inner_product_is_further_off_than_it_says(vectors, query):
    codes, scales, longest = opened(vectors)
    index, exact = FlatIndex(codes, scales, longest), vectors.astype(np.float64) @ query
    rounded = np.frombuffer(codes.part(0, len(codes)), np.int8).reshape(vectors.shape) * scales
    off = np.abs(rounded.astype(np.float64) @ query - exact)
    assert (off <= np.abs(query) @ scales / 2 * (1 + 1e-5) + 1e-7).all()
    scores, positions = index.search(query[None], len(vectors))
    assert (np.abs(scores[0] - exact[positions[0]]) <= index.error(query)).all()


TEXTS = [document(number) for number in range(300)]


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """Kind -> directory of an index of `TEXTS`; read-only."""
    root = tmp_path_factory.mktemp("indexes")
    for kind in ("flat", "hnsw"):
        build(root / kind, TEXTS, kind=kind)
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
    asked = queries(20) * 2  # for scores up to 1 and more
    for row in hits_by(DocumentIndex(indexes[kind]), asked, 200):
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
