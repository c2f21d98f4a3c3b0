"""Word vectors: a dictionary from training pairs, rotation, padded ids, and BWE-Agg."""

import numpy as np
import pytest

from tests.papers.yu2020 import word_vector_world as world
from tests.small_world import SmallWorld
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import RaggedStore, RaggedWriter
from tf_smoothclir.interaction.inputs import InteractionTexts, padded_ids
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.lexical.word_vectors import WordVectors
from tf_smoothclir.papers.yu2020.cells import MeanVectors
from tf_smoothclir.papers.yu2020.matching_data import (
    aligned,
    content_words,
    mined_dictionary,
    word_counts,
)
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.errors import InputError


def pairs_of(number):
    """Queries and documents that translate each other word by word, 2 to 7, and their ids."""
    random = np.random.default_rng(5)
    ids = np.array([random.permutation(np.arange(2, 8))[:2] for _ in range(number)], np.int32)
    world = SmallWorld(
        queries=[(f"q{i}", "x") for i in range(number)],
        documents=[(f"d{i}", "x") for i in range(number)],
        judgments=[(f"q{i}", f"d{i}", 2) for i in range(number)],
        splits={f"q{i}": "train" for i in range(number)},
    )
    return RetrievalSet.load(world), InteractionTexts(ids, ids.copy())


def test_words_of_five_pairs_translate_each_other():
    rows, columns = mined_dictionary(*pairs_of(80), (8, 8))
    assert dict(zip(rows, columns)) == {word: word for word in range(2, 8)}
    assert not len(mined_dictionary(*pairs_of(4), (8, 8))[0])


def test_a_rotation_of_the_space_is_undone():
    random = np.random.default_rng(3)
    documents = unit_rows(random.normal(size=(40, 5)).astype(np.float32))
    rotation, _ = np.linalg.qr(random.normal(size=(5, 5)))
    vectors = WordVectors(documents @ rotation.astype(np.float32), documents)
    seeds = np.arange(2, 20)  # half of the words
    found = aligned(vectors, (seeds, seeds))
    np.testing.assert_allclose(found.queries, found.documents, atol=1e-5)
    assert not found.queries[:2].any()  # padding and unknown words
    # Words without a vector stay without.
    vectors = random.normal(size=(12, 4)).astype(np.float32)
    vectors[7] = 0
    found = aligned(WordVectors(vectors, vectors), (np.arange(2, 12), np.arange(2, 12)))
    assert not found.queries[7].any()
    norms = np.linalg.norm(found.queries[2:], axis=1)
    assert sorted(norms.round(4)) == pytest.approx([0, *[1] * 9])
    nothing = np.zeros((4, 3), np.float32)
    with pytest.raises(InputError, match="none of the 1 words"):
        aligned(WordVectors(nothing, nothing), (np.array([2]), np.array([3])))


TEXTS = [[5, 2, 7], [], [3, 3, 3, 4, 9]]


@pytest.fixture
def store(tmp_path):
    with RaggedWriter(tmp_path, "query", "<i4") as writer:
        writer.add(np.concatenate(TEXTS).astype(np.int32), np.array([len(t) for t in TEXTS]))
    return RaggedStore(tmp_path, "query", "<i4")


def test_texts_are_padded_behind_and_cut_after_words_are_left_out(store, tmp_path):
    padded = padded_ids(store, 10)
    np.testing.assert_array_equal(padded, [[5, 2, 7, 0, 0], [0, 0, 0, 0, 0], [3, 3, 3, 4, 9]])
    assert padded.dtype == np.int32
    np.testing.assert_array_equal(padded_ids(store, 2), [[5, 2], [0, 0], [3, 3]])
    kept = np.array([False, True, False, False, True])  # ids from 5 on are kept
    np.testing.assert_array_equal(padded_ids(store, 2, kept), [[5, 7], [0, 0], [4, 9]])
    with RaggedWriter(tmp_path, "document", "<i4") as writer:  # empty texts have one column
        writer.add(np.zeros(0, np.int32), np.zeros(2, int))
    assert padded_ids(RaggedStore(tmp_path, "document", "<i4"), 5).tolist() == [[0], [0]]


def test_content_words_have_letters_and_are_not_too_common(store):
    #              0        1        2    3      4    5      6     7      8     9
    vocabulary = ["[PAD]", "[UNK]", "!", "the", "x", "cat", "水", "b2b", "--", "is"]
    kept = content_words(vocabulary, store, np.array([0, 1, 2]), most_common=0.4)
    # Each word stands in one of three texts, a share of 0.33.
    assert kept.tolist() == [False, True, False, True, False, True, True, True, False, True]
    # With two texts counted, words of either stand in half of them; others in none.
    kept = content_words(vocabulary, store, np.array([0, 2]), most_common=0.4)
    assert kept.tolist() == [False, True, False, False, False, False, True, False, False, False]


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
    # Counts leave out padding and unknown words.
    counts = word_counts(np.array([[2, 2, 1, 0], [5, 99, 0, 0]]), 6)
    np.testing.assert_array_equal(counts.toarray(), [[0, 0, 2, 0, 0, 0], [0, 0, 0, 0, 0, 1]])
