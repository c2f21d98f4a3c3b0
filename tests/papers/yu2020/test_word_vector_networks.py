"""The networks of Yu and Allan 2020: loops in NumPy, padding, gradients."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import cases
from tests.oracles import interaction as oracle
from tests.papers.yu2020 import word_vector_world as world
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.interaction.networks.base import WordTables
from tf_smoothclir.papers.yu2020 import cells, networks
from tf_smoothclir.papers.yu2020.experiments import EXACT
from tf_smoothclir.papers.yu2020.networks import Cosines, Drmm, Knrm, MatchPyramid

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
        for row in (EXACT[0], EXACT[-2])
    },
}
KNOWN = tf.constant([[True] * 3])
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


def scores(network, queries, documents):
    return network((world.padded(queries), world.padded(documents))).numpy()


def similarities(query=QUERY, document=DOCUMENT):
    return oracle.cosines(query, document, world.QUERIES, world.DOCUMENTS)


@settings(max_examples=15, deadline=None)
@given(texts, texts)
def test_knrm_and_drmm_are_loops_over_words(query, document):
    network = build("knrm")
    phi = oracle.knrm_features(similarities(query, document), networks.kernels(20))
    expected = np.array(phi) @ np.asarray(network.weight)[:, 0] + np.asarray(network.bias)[0]
    assert scores(network, [query], [document]) == pytest.approx([expected], abs=1e-3)
    network = build("drmm")
    weights = weights_of(network)
    expected = oracle.drmm_score(query, document, world.QUERIES, world.DOCUMENTS, weights)
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
    found = networks.interaction_map(cosines, "exact", 0.5)
    assert found.numpy().tolist() == [[[0, 1, 1]]]


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
    queries = [QUERY, [2], [], [world.NO_VECTOR, 1], [7, 6, 3, 2, 8, 9]]
    documents = [DOCUMENT, [6], DOCUMENT, [world.NO_VECTOR, 2, 3], []]
    alone = [scores(network, [q], [d])[0] for q, d in zip(queries, documents)]
    weights = [tf_variable(weight) for weight in network.trainable_weights]
    with tf.GradientTape() as tape:
        together = network((world.padded(queries, 11), world.padded(documents, 13)))
        loss = tf.reduce_sum(tf.square(together))
    np.testing.assert_allclose(together, alone, atol=1e-5)
    for value in (together, *tape.gradient(loss, weights)):
        assert np.isfinite(value).all()
