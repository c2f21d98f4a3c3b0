"""BWE-Agg: cosines of mean vectors, by hand and beside the similarity of the towers."""

import numpy as np
import pytest

from tests.interaction import word_vector_world as world
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.interaction.mean_vectors import MeanVectors, word_counts
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.interaction.texts import InteractionTexts
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

QUERIES, DOCUMENTS = [[2, 3, 3], [7], [1, world.NO_VECTOR]], [[4, 6], [9, 2, 9, 9], [], [6, 4]]


def scored(queries=QUERIES, documents=DOCUMENTS, *, by_rarity=False):
    """Scores of every pair, `[queries, documents]`."""
    padded = (world.padded(texts, 8).numpy() for texts in (queries, documents))
    tables = world.QUERIES, world.DOCUMENTS
    scorer = MeanVectors(InteractionTexts(*padded), *tables, by_rarity=by_rarity)
    number, rows = len(documents), np.arange(len(queries))
    offsets = np.arange(len(queries) + 1) * number
    pairs = np.tile(np.arange(number), len(queries)), np.zeros(len(queries) * number, int)
    return scorer.score(CandidateLists(rows, offsets, *pairs)).reshape(len(queries), number)


def test_it_is_the_score_of_towers_without_tanh_and_with_epsilon_0():
    """Of towers whose tables are the vectors of length 1 (specification, section 12.6)."""
    tables = unit_rows(world.QUERIES), unit_rows(world.DOCUMENTS)
    means = [
        np.array([table[text].mean(axis=0) if text else 0 * table[0] for text in texts])
        for table, texts in zip(tables, (QUERIES, DOCUMENTS))
    ]
    layer = SmoothCosineSimilarity(epsilon=0.0)
    expected = [layer([np.repeat(q[None], len(means[1]), 0), means[1]]) for q in means[0]]
    np.testing.assert_allclose(scored(), expected, atol=1e-6)
    # Texts without known words have 0.
    assert not scored()[2].any()
    assert not scored()[:, 2].any()


def test_rarity_weights_words_of_documents_alone():
    """Word 6 is in 2 of 4 documents, 4 in 2, 9 and 2 in 1: ln 2, ln 2, ln 4, ln 4."""
    table = unit_rows(world.DOCUMENTS)
    common, rare = np.log(2) * (table[4] + table[6]), np.log(4) * (3 * table[9] + table[2])
    documents = np.array([common, rare, 0 * table[0], common])
    query = unit_rows(world.QUERIES)[[2, 3, 3]].mean(axis=0)
    norms = np.linalg.norm(query) * np.linalg.norm(documents, axis=1)
    expected = np.divide(documents @ query, norms, out=np.zeros(4), where=norms > 0)
    np.testing.assert_allclose(scored(by_rarity=True)[0], expected, atol=1e-6)
    # A word of every document says nothing.
    found = scored(documents=[[4], [4, 6]], by_rarity=True)
    assert not found[:, 0].any()
    assert found[0, 1] == pytest.approx(scored(documents=[[6]])[0, 0], abs=1e-6)


def test_counts_leave_out_padding_and_unknown_words():
    counts = word_counts(np.array([[2, 2, 1, 0], [5, 99, 0, 0]]), 6)
    np.testing.assert_array_equal(counts.toarray(), [[0, 0, 2, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
