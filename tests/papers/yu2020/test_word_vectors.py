"""Word vectors: a dictionary from training pairs, rotation, BWE-Agg; networks that read them."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.oracles import interaction as oracle
from tests.small_world import numbered_set
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.data.candidate_lists import CandidateLists
from tf_smoothclir.data.tokenized_set import RaggedStore, RaggedWriter
from tf_smoothclir.interaction.inputs import InteractionTexts, padded_ids
from tf_smoothclir.interaction.networks.base import WordTables, unit_rows
from tf_smoothclir.lexical.word_vectors import WordVectors
from tf_smoothclir.papers.yu2020 import cells, experiments, networks
from tf_smoothclir.papers.yu2020.matching_data import (
    aligned,
    content_words,
    mined_dictionary,
    word_counts,
)
from tf_smoothclir.papers.yu2020.networks import Cosines, Drmm, Knrm, MatchPyramid
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity
from tf_smoothclir.utils.errors import InputError

NO_VECTOR = 5  # a word of either language without a vector
_random = np.random.default_rng(7)
QUERY_TABLE = _random.normal(size=(12, 6)).astype(np.float32)
DOCUMENT_TABLE = _random.normal(size=(15, 6)).astype(np.float32)
# Some pairs of words are translations, one of them exactly.
DOCUMENT_TABLE[2:5] = QUERY_TABLE[2:5] + 0.3 * DOCUMENT_TABLE[2:5]
DOCUMENT_TABLE[6] = 3 * QUERY_TABLE[6]
QUERY_TABLE[NO_VECTOR] = DOCUMENT_TABLE[NO_VECTOR] = 0
TEXTS = [[5, 2, 7], [], [3, 3, 3, 4, 9]]
ASKED, ANSWERS = [[2, 3, 3], [7], [1, NO_VECTOR]], [[4, 6], [9, 2, 9, 9], [], [6, 4]]
QUERY, DOCUMENT = [2, 3, 6, 7], [4, 6, 2, 9, 10, 14, 2]
NETWORKS = {
    "knrm": Knrm,
    "drmm": Drmm,
    **{
        f"match_pyramid-{kind}": lambda tables, kind=kind: MatchPyramid(tables, kind, kernels=4)
        for kind in networks.INTERACTIONS
    },
    **{  # of Figure 1
        f"match_pyramid-exact-{row.eta:g}": lambda tables, row=row: cells.build(row, None, tables)
        for row in (experiments.EXACT[0], experiments.EXACT[-2])
    },
}
KNOWN = tf.constant([[True] * 3])
texts = st.lists(st.integers(1, 11), min_size=0, max_size=7)


def padded(texts, length=None):
    length = length or max(1, *map(len, texts))
    return tf.constant([[*text, *[0] * (length - len(text))] for text in texts], tf.int32)


def pairs_of(number):
    """Queries and documents that translate each other word by word, 2 to 7, and their ids."""
    random = np.random.default_rng(5)
    ids = np.array([random.permutation(np.arange(2, 8))[:2] for _ in range(number)], np.int32)
    mates = [(each, each, 2) for each in range(number)]
    return numbered_set(number, number, mates, splits=["train"]), InteractionTexts(ids, ids.copy())


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


@pytest.fixture
def store(tmp_path):
    with RaggedWriter(tmp_path, "query", "<i4") as writer:
        writer.add(np.concatenate(TEXTS).astype(np.int32), np.array([len(t) for t in TEXTS]))
    return RaggedStore(tmp_path, "query", "<i4")


def test_texts_are_padded_behind_and_cut_after_words_are_left_out(store, tmp_path):
    whole = padded_ids(store, 10)
    np.testing.assert_array_equal(whole, [[5, 2, 7, 0, 0], [0, 0, 0, 0, 0], [3, 3, 3, 4, 9]])
    assert whole.dtype == np.int32
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


def scored(queries=ASKED, documents=ANSWERS, *, by_rarity=False):
    """Scores of every pair, `[queries, documents]`."""
    texts = InteractionTexts(*(padded(some, 8).numpy() for some in (queries, documents)))
    scorer = cells.MeanVectors(texts, (QUERY_TABLE, DOCUMENT_TABLE), by_rarity=by_rarity)
    number, rows = len(documents), np.arange(len(queries))
    offsets = np.arange(len(queries) + 1) * number
    pairs = np.tile(np.arange(number), len(queries)), np.zeros(len(queries) * number, int)
    return scorer.score(CandidateLists(rows, offsets, *pairs)).reshape(len(queries), number)


def test_it_is_the_score_of_towers_without_tanh_and_with_epsilon_0():
    """Of towers whose tables are the vectors of length 1 (specification, section 12.6)."""
    tables = unit_rows(QUERY_TABLE), unit_rows(DOCUMENT_TABLE)
    means = [
        np.array([table[text].mean(axis=0) if text else 0 * table[0] for text in texts])
        for table, texts in zip(tables, (ASKED, ANSWERS))
    ]
    layer = SmoothCosineSimilarity(epsilon=0.0)
    expected = [layer([np.repeat(q[None], len(means[1]), 0), means[1]]) for q in means[0]]
    np.testing.assert_allclose(scored(), expected, atol=1e-6)
    # Texts without known words have 0.
    assert not scored()[2].any()
    assert not scored()[:, 2].any()


def test_rarity_weights_words_of_documents_alone():
    """Word 6 is in 2 of 4 documents, 4 in 2, 9 and 2 in 1: ln 2, ln 2, ln 4, ln 4."""
    table = unit_rows(DOCUMENT_TABLE)
    common, rare = np.log(2) * (table[4] + table[6]), np.log(4) * (3 * table[9] + table[2])
    documents = np.array([common, rare, 0 * table[0], common])
    query = unit_rows(QUERY_TABLE)[[2, 3, 3]].mean(axis=0)
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


def weights_of(network):
    names = ("gate", "hidden", "hidden_bias", "output_weight", "output_bias")
    return {name: np.asarray(getattr(network, name)) for name in names if hasattr(network, name)}


def build(name, seed=3):
    """A network with random weights, biases too."""
    tf.keras.utils.set_random_seed(seed)
    network = NETWORKS[name](WordTables(QUERY_TABLE, DOCUMENT_TABLE))
    random = np.random.default_rng(seed)
    for weight in network.trainable_weights:
        weight.assign(random.normal(scale=0.4, size=tuple(weight.shape)).astype(np.float32))
    return network


def scores(network, queries, documents):
    return network((padded(queries), padded(documents))).numpy()


def similarities(query=QUERY, document=DOCUMENT):
    return oracle.cosines(query, document, QUERY_TABLE, DOCUMENT_TABLE)


@settings(max_examples=15)
@given(texts, texts)
def test_knrm_and_drmm_are_loops_over_words(query, document):
    network = build("knrm")
    phi = oracle.knrm_features(similarities(query, document), networks.kernels(20))
    expected = np.array(phi) @ np.asarray(network.weight)[:, 0] + np.asarray(network.bias)[0]
    assert scores(network, [query], [document]) == pytest.approx([expected], abs=1e-3)
    network = build("drmm")
    expected = oracle.drmm_score(query, document, QUERY_TABLE, DOCUMENT_TABLE, weights_of(network))
    assert scores(network, [query], [document]) == pytest.approx([expected], abs=1e-4)


@cases("query", [2], QUERY, [2, 3, 6, 7, 4], [2, 3, 6, 7, 4, 8, 2, 9])
@cases("name", *list(NETWORKS)[2:])
def test_match_pyramid_is_a_loop_over_cells(name, query):
    network = build(name)
    _, kind, *eta = name.split("-")
    found = similarities(query)
    maps = [
        oracle.interaction_map(found, one, float(*eta or [0.3]))
        for one in networks.INTERACTIONS[kind]
    ]
    parts = [list(map(np.asarray, some)) for some in (network.convolutions, network.biases)]
    expected = oracle.match_pyramid_score(maps, *parts, weights_of(network))
    assert scores(network, [query], [DOCUMENT]) == pytest.approx([expected], abs=1e-4)


def test_a_cosine_of_eta_counts_as_an_exact_match():
    cosines = Cosines(tf.constant([[[0.25, 0.5, 0.75]]]), tf.constant([[True]]), KNOWN)
    assert networks.interaction_map(cosines, "exact", 0.5).numpy().tolist() == [[[0, 1, 1]]]


def test_bins_kernels_and_numbers_of_weights_by_hand():
    # (0.3 + 1) / 2 · 29 = 18.85; only the same word is in 29.
    bins = networks.bins_of(tf.constant([-1, 0, 0.3, 0.9999999, 1.0000001], tf.float32), 30)
    assert bins.numpy().tolist() == [0, 14, 18, 29, 29]
    # MatchZoo's: 1/19 + 2i/19 - 1 = (2i - 18) / 19 for i = 0..18, then 1 with a narrow one.
    means, widths = zip(*networks.kernels(20))
    assert means == pytest.approx([*((2 * i - 18) / 19 for i in range(19)), 1])
    assert widths == (*[0.1] * 19, 0.001)
    sizes = {
        "knrm": 20 + 1,
        "drmm": 6 + 30 * 10 + 10 + 10 + 1,  # vectors of 6 numbers
        "match_pyramid-hybrid": 2 * (9 * 4 + 4) + 40 * 20 + 20 + 20 + 1,  # 4 kernels, 5 parts
    }
    found = {name: sum(w.numpy().size for w in build(name).trainable_weights) for name in sizes}
    assert found == sizes
    with pytest.raises(ValueError, match="6 numbers, document vectors 5"):
        WordTables(np.zeros((3, 6)), np.zeros((3, 5)))


@cases("name", *NETWORKS)
def test_padding_and_other_pairs_change_no_score_and_gradients_are_finite(name):
    network = build(name)
    queries = [QUERY, [2], [], [NO_VECTOR, 1], [7, 6, 3, 2, 8, 9]]
    documents = [DOCUMENT, [6], DOCUMENT, [NO_VECTOR, 2, 3], []]
    alone = [scores(network, [q], [d])[0] for q, d in zip(queries, documents)]
    weights = [tf_variable(weight) for weight in network.trainable_weights]
    with tf.GradientTape() as tape:
        together = network((padded(queries, 11), padded(documents, 13)))
        loss = tf.reduce_sum(tf.square(together))
    np.testing.assert_allclose(together, alone, atol=1e-5)
    for value in (together, *tape.gradient(loss, weights)):
        assert np.isfinite(value).all()
