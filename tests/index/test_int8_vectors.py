"""Vectors of one byte per number: how far off they are, and what reads them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from tests.index.helpers import build, document, found_by, queries, recall_of
from tf_smoothclir.index.document_index import DocumentIndex
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.scans import BitScan, Int8Scan
from tf_smoothclir.index.vector_index import IndexSettings, VectorIndex
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

TEXTS = [document(number) for number in range(300)]
NUMBERS = st.floats(-1, 1, width=32)


def random_vectors(documents, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(documents, dim)).astype(np.float32) / dim


def test_a_number_becomes_the_next_multiple_of_its_scale():
    # The largest of the columns are 1.27, 0 and 2.54, so the scales are 0.01, nearly 0 and 0.02.
    vectors = np.array([[1.27, 0, -2.54], [0.013, 0, 0.031]], np.float32)
    found = Int8Vectors.of(vectors)
    assert found.codes.tolist() == [[127, 0, -127], [1, 0, 2]]
    np.testing.assert_allclose(found.scales, [0.01, 1e-20, 0.02], rtol=1e-6)
    np.testing.assert_allclose(found[np.array([1])], [[0.01, 0, 0.04]], rtol=1e-6)
    np.testing.assert_allclose(found[:1], [[1.27, 0, -2.54]], rtol=1e-6)


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
    vectors = Int8Vectors.of(random_vectors(50, dim))
    asked = random_vectors(4, dim, seed=1)
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
    found = {path.name for path in (tmp_path / "index" / manifest.content / "vectors").iterdir()}
    assert found == {"codes", "scales", "longest"}
    index = DocumentIndex(tmp_path / "index")
    assert manifest.vectors.recall.value == pytest.approx(1, abs=0.05)
    assert manifest.vectors.recall.queries == len(TEXTS)
    rounded = index.dense.vectors[:].astype(np.float64)
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
