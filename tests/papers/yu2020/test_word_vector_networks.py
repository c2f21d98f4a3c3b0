"""The networks of Yu and Allan 2020: loops in NumPy, padding, word order, gradients."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.interaction import word_vector_world as world
from tests.oracles import interaction as oracle
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.interaction.networks.word_tables import WordTables
from tf_smoothclir.lexical.query_translation import by_nearest
from tf_smoothclir.papers.yu2020.networks import drmm, kernels, match_pyramid
from tf_smoothclir.papers.yu2020.networks.conv_knrm import ConvKnrm
from tf_smoothclir.papers.yu2020.networks.drmm import Drmm
from tf_smoothclir.papers.yu2020.networks.knrm import Knrm
from tf_smoothclir.papers.yu2020.networks.match_pyramid import INTERACTIONS, MatchPyramid

QUERY, DOCUMENT = [2, 3, 6, 7], [4, 6, 2, 9, 10, 14, 2]
NETWORKS = {
    "knrm": Knrm,
    "drmm": Drmm,
    "conv_knrm": lambda tables: ConvKnrm(tables, filters=8),
    **{
        f"match_pyramid-{kind}": lambda tables, kind=kind: MatchPyramid(tables, kind, kernels=4)
        for kind in ("cosine", "gaussian", "exact", "hybrid")
    },
}
UNORDERED = ("knrm", "drmm")  # word order says nothing to them
NAMES = tuple(NETWORKS)
texts = st.lists(st.integers(1, 11), min_size=0, max_size=7)


def weights_of(network):
    names = ("gate", "hidden", "hidden_bias", "output_weight", "output_bias")
    return {name: np.asarray(getattr(network, name)) for name in names if hasattr(network, name)}


def build(name, seed=3):
    """A network with random weights, biases too."""
    tf.keras.utils.set_random_seed(seed)
    network = NETWORKS[name](world.tables())
    random = np.random.default_rng(seed)
    for weight in network.trainable_weights:
        weight.assign(random.normal(scale=0.4, size=tuple(weight.shape)).astype(np.float32))
    return network


def scores(network, queries, documents, query_length=None, document_length=None):
    ids = world.padded(queries, query_length), world.padded(documents, document_length)
    return network(ids).numpy()


def similarities(query=QUERY, document=DOCUMENT):
    return oracle.cosines(query, document, world.QUERIES, world.DOCUMENTS)


def cosines_of(query, document):
    return world.tables().cosines(world.padded([query]), world.padded([document]))


# Loops in NumPy


def test_cosines_are_those_of_a_loop():
    found = cosines_of(QUERY, DOCUMENT)
    np.testing.assert_allclose(found.values[0], similarities(), atol=1e-6)


@settings(max_examples=15, deadline=None)
@given(texts, texts)
def test_knrm_is_a_loop_over_words(query, document):
    network = build("knrm")
    phi = oracle.knrm_features(similarities(query, document), kernels.kernels(20))
    expected = np.array(phi) @ np.asarray(network.weight)[:, 0] + np.asarray(network.bias)[0]
    assert scores(network, [query], [document]) == pytest.approx([expected], abs=1e-3)


@settings(max_examples=15, deadline=None)
@given(texts, texts)
def test_drmm_is_a_loop_over_words(query, document):
    network = build("drmm")
    weights = weights_of(network)
    expected = oracle.drmm_score(query, document, world.QUERIES, world.DOCUMENTS, weights)
    assert scores(network, [query], [document]) == pytest.approx([expected], abs=1e-4)


@pytest.mark.parametrize("query", [[2], [2, 3], QUERY, [2, 3, 6, 7, 4], [2, 3, 6, 7, 4, 8, 2, 9]])
@pytest.mark.parametrize("kind", INTERACTIONS)
def test_match_pyramid_is_a_loop_over_cells(kind, query):
    network = build(f"match_pyramid-{kind}")
    found = similarities(query)
    maps = [oracle.interaction_map(found, one, 0.3) for one in INTERACTIONS[kind]]
    parts = [list(map(np.asarray, some)) for some in (network.convolutions, network.biases)]
    expected = oracle.match_pyramid_score(maps, *parts, weights_of(network))
    assert scores(network, [query], [DOCUMENT]) == pytest.approx([expected], abs=1e-4)


def test_conv_knrm_is_a_loop_over_ngrams():
    network = build("conv_knrm")
    tables = world.tables()
    expected = oracle.conv_knrm_score(
        tables.query_vectors(tf.constant(QUERY)).numpy(),
        tables.document_vectors(tf.constant(DOCUMENT)).numpy(),
        list(map(np.asarray, network.convolutions)),
        list(map(np.asarray, network.biases)),
        network.kernels,
        np.asarray(network.weight),
        np.asarray(network.bias),
    )
    assert scores(network, [QUERY], [DOCUMENT]) == pytest.approx([expected], abs=1e-3)


# Hand arithmetic


@pytest.mark.parametrize(
    ("cosine", "expected"),
    [(-1, 0), (0, 14), (0.3, 18), (0.535, 22), (0.9999999, 29), (1, 29), (1.0000001, 29)],
)
def test_bins_by_hand(cosine, expected):
    """(0.3 + 1) / 2 · 29 = 18.85, (0.535 + 1) / 2 · 29 = 22.26; only the same word is in 29."""
    assert drmm.bins_of(tf.constant([cosine], tf.float32), 30).numpy() == [expected]


def test_means_of_twenty_kernels():
    """MatchZoo's: 1/19 + 2i/19 - 1 = (2i - 18) / 19 for i = 0..18, then 1 with a narrow one."""
    found = kernels.kernels(20)
    assert [k.mean for k in found] == pytest.approx([*((2 * i - 18) / 19 for i in range(19)), 1])
    assert [k.width for k in found] == [*[0.1] * 19, 0.001]


def test_kernels_by_hand():
    """One query word with cosines 0.6 and -0.8 to two document words."""
    tables = WordTables(np.array([[0, 0]] * 2 + [[2.0, 0]]), np.array(
        [[0, 0]] * 2 + [[3.0, 4], [-4.0, 3]]
    ))  # fmt: skip
    network = Knrm(tables, number=3)  # means -1/2, 1/2 and 1
    (found,) = network.features(tf.constant([[2]]), tf.constant([[2, 3]]))
    # (-0.8 + 0.5)² / (2 · 0.01) = 4.5, (0.6 + 0.5)² / 0.02 = 60.5
    # (0.6 - 0.5)² / 0.02 = 0.5, (-0.8 - 0.5)² / 0.02 = 84.5
    expected = [np.log1p(np.exp(-4.5)), np.log1p(np.exp(-0.5)), 0]
    np.testing.assert_allclose(found[0], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1, [[0], [0], [0], [0], [0]]),
        (2, [[0], [0], [0, 1], [1], [1]]),
        (3, [[0], [0, 1], [1], [1, 2], [2]]),
        (5, [[0], [1], [2], [3], [4]]),
        (7, [[0, 1], [1, 2], [2, 3, 4], [4, 5], [5, 6]]),
    ],
)
def test_rows_of_pooling_parts_by_hand(length, expected):
    rows = match_pyramid.pooled_rows(tf.constant([length]), 7, 5)[0].numpy()
    assert [list(np.flatnonzero(part)) for part in rows] == expected


# True by construction (specification, section 12.6)


@settings(max_examples=20, deadline=None)
@given(texts, texts)
def test_counts_of_a_term_add_up_to_the_known_words_of_the_document(query, document):
    counts = drmm.histograms(cosines_of(query, document), 30).numpy()[0]
    length = len(oracle.known(document, world.DOCUMENTS))
    expected = [length if word in oracle.known(query, world.QUERIES) else 0 for word in query]
    assert list(counts.sum(axis=1)[: len(query)]) == expected
    assert not counts[len(query) :].any()


@pytest.mark.parametrize("name", NAMES)
def test_padding_and_other_pairs_change_no_score(name):
    network = build(name)
    queries = [QUERY, [2], [], [world.NO_VECTOR, 1], [7, 6, 3, 2, 8, 9]]
    documents = [DOCUMENT, [6], DOCUMENT, [2, 3], []]
    alone = [scores(network, [q], [d])[0] for q, d in zip(queries, documents)]
    together = scores(network, queries, documents, 11, 13)
    np.testing.assert_allclose(together, alone, atol=1e-5)
    assert np.isfinite(together).all()


@pytest.mark.parametrize("name", NAMES)
def test_word_order_says_something_to_match_pyramid_and_ngrams_alone(name):
    network = build(name)
    forward = scores(network, [QUERY], [DOCUMENT])
    turned = scores(network, [QUERY], [DOCUMENT[::-1]])
    query = scores(network, [QUERY[::-1]], [DOCUMENT])
    changes = [abs(float(other[0] - forward[0])) for other in (turned, query)]
    if name in UNORDERED:
        assert max(changes) < 1e-5
    else:
        assert min(changes) > 1e-4


@pytest.mark.parametrize("name", UNORDERED)
@pytest.mark.parametrize("word", [1, world.NO_VECTOR, 99])
def test_unknown_words_say_nothing_where_order_says_nothing(name, word):
    network = build(name)
    with_unknown = scores(network, [[word, *QUERY]], [[*DOCUMENT, word]])
    assert with_unknown == pytest.approx(scores(network, [QUERY], [DOCUMENT]), abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_gradients_are_finite_for_empty_and_unknown_words(name):
    network = build(name)
    ids = (
        world.padded([QUERY, [], [1], [world.NO_VECTOR]]),
        world.padded([[], DOCUMENT, [world.NO_VECTOR], [1, 2]]),
    )
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(network(ids)))
    gradients = tape.gradient(loss, [tf_variable(weight) for weight in network.trainable_weights])
    for gradient in gradients:
        assert np.isfinite(gradient.numpy()).all()


@pytest.mark.parametrize("kind", ["cosine", "gaussian"])
def test_gaussian_map_is_a_rising_function_of_the_cosine_map(kind):
    found = match_pyramid.interaction_map(cosines_of(QUERY, DOCUMENT), kind, 0.3).numpy().ravel()
    order = np.argsort(np.ravel(similarities()))
    assert (np.diff(found[order]) >= -1e-6).all()


def test_gaussian_cells_are_those_of_the_squared_distance():
    """1 for the same direction, exp(-2) = 0.135 for a cosine of 0."""
    tables = WordTables(np.eye(4)[:, 2:], np.array([[0, 0]] * 2 + [[5.0, 0], [0, 1]]))
    cosines = tables.cosines(tf.constant([[2]]), tf.constant([[2, 3]]))
    found = match_pyramid.interaction_map(cosines, "gaussian", 0.3)
    np.testing.assert_allclose(found[0, 0], [1, np.exp(-2)], rtol=1e-6)


@pytest.mark.parametrize(("eta", "expected"), [(-1.01, 1), (1.01, 0)])
def test_exact_maps_at_the_ends_of_eta(eta, expected):
    found = match_pyramid.interaction_map(cosines_of(QUERY, DOCUMENT), "exact", eta)
    assert (found.numpy() == expected).all()


def test_beyond_the_largest_cosine_exact_says_nothing_of_words():
    """All documents of a length then have one score."""
    tables = world.tables()
    network = MatchPyramid(tables, "exact", eta=1.01, kernels=4)
    found = scores(network, [QUERY] * 2, [[4, 6, 2], [9, 10, 14]])
    assert found[0] == found[1]


@pytest.mark.parametrize("name", NAMES)
def test_same_tables_and_a_translation_of_each_word_by_itself_change_nothing(name):
    """If both languages are one, tr(q) = q, so X-TbT-QT is X-Cosine."""
    table = world.QUERIES
    same = sp.csr_array(np.eye(len(table), 2 * len(table), dtype=np.float32))
    occurring = np.arange(len(table)) > 1
    translation = by_nearest(table, table, occurring, same)[: len(table)]
    translated_table = translation @ table
    known = np.flatnonzero(occurring & table.any(axis=1))
    np.testing.assert_array_equal(translation.indices[known], known)
    tf.keras.utils.set_random_seed(5)
    network = NETWORKS[name](WordTables(table, table))
    tf.keras.utils.set_random_seed(5)
    translated = NETWORKS[name](WordTables(translated_table, table))
    expected = scores(network, [QUERY], [[2, 7, 8]])
    assert scores(translated, [QUERY], [[2, 7, 8]]) == pytest.approx(expected, abs=1e-6)


# Sizes, and errors


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("knrm", 20 + 1),
        ("drmm", 6 + 30 * 10 + 10 + 10 + 1),  # vectors of 6 numbers
        ("match_pyramid-cosine", (9 * 4 + 4) + 20 * 20 + 20 + 20 + 1),  # 4 kernels, 5 parts
        ("match_pyramid-hybrid", 2 * (9 * 4 + 4) + 40 * 20 + 20 + 20 + 1),
        ("conv_knrm", sum(s * 6 * 8 + 8 for s in (1, 2, 3)) + 9 * 11 + 1),
    ],
)
def test_weights(name, expected):
    network = build(name)
    assert sum(int(np.prod(weight.shape)) for weight in network.trainable_weights) == expected


def test_gates_sum_to_1_over_known_words():
    gates = build("drmm").gates(world.padded([[2, world.NO_VECTOR, 3], [1]])).numpy()
    np.testing.assert_allclose(gates.sum(axis=1), [1, 0], atol=1e-6)
    assert gates[0, 1] == 0


def test_vectors_of_two_spaces_are_refused():
    with pytest.raises(ValueError, match="6 numbers, document vectors 5"):
        WordTables(np.zeros((3, 6)), np.zeros((3, 5)))


def test_ngrams_need_no_words_behind_a_short_text():
    network = ConvKnrm(world.tables(), filters=8)
    assert np.isfinite(scores(network, [[2]], [[3]])).all()
