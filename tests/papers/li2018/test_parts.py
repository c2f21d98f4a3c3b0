"""Losses, and towers that add up words or pool an LSTM, of Li and Cheng 2018, by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.cases import cases
from tests.oracles import maths
from tests.towers import test_towers as every_sequence_tower
from tests.towers.test_towers import flat, padded
from tests.training.test_trainer import start
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.papers.li2018 import pair_tasks, settings
from tf_smoothclir.papers.li2018 import task as module
from tf_smoothclir.papers.li2018.towers import LinearTower, MaxLSTMTower, WordTanhTower, matrices
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.text.tokens import Tokens
from tf_smoothclir.towers.lstm import UNITS
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

TEXTS = [[2, 3, 3], [], [4]]
TABLE = np.array([[9, 9], [8, 8], [1, -2], [0.5, 4], [0, 3]], np.float32)
IDF = np.array([1, 1, 2, 0.5, 3])
RANDOM = np.random.default_rng(3)
OF_LSTM = [[2, 3, 4, 5], [6], [], [7, 2, 2]]


@cases("margin, beta", (0.3, 1.0), (-0.2, 10.0))
def test_matching_by_hand(margin, beta):
    """The loss of DSSM with one negative and of S2Net, -log σ(β Δ)."""
    loss = module.matching_loss(tf.constant([margin]), beta)
    assert float(loss) == pytest.approx(math.log1p(math.exp(-beta * margin)), rel=1e-5)


def test_translation_likelihood_and_accuracies_by_hand():
    queries, translations = tf.constant([[1.0, 2.0], [0.0, 0.0]]), tf.constant([[0.0, 0.0]] * 2)
    assert module.translation_loss(queries, translations) == (1 + 4) / 2
    # Each source counts alike, however many texts it has.
    logits = [tf.constant([[math.log(2), 0.0, 0.0]] * n) for n in (1, 1, 7)]
    expected = sum(map(math.log, (2 / 4, 1 / 4, 1 / 4))) / 3  # of the source of each list
    assert float(module.source_log_likelihood(logits)) == pytest.approx(expected)
    first, last = [9.0, 0.0, 0.0], [0.0, 0.0, 9.0]
    logits = [tf.constant(rows) for rows in ([first, last], [first], [last, last, first, first])]
    assert [float(share) for share in module.source_accuracies(logits)] == [0.5, 0.0, 0.5]


def test_a_new_discriminator_is_at_minus_log_3_and_moves_no_vector():
    layer = module.discriminator(4)
    random = np.random.default_rng(0)
    texts = [tf.constant(random.normal(size=(n, 4)), tf.float32) for n in (3, 3, 6)]
    with tf.GradientTape() as tape:
        tape.watch(texts)
        found = module.source_log_likelihood([layer(of) for of in texts])
    assert float(found) == pytest.approx(-math.log(3))
    for gradient in tape.gradient(found, texts):
        np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))


def test_norms_have_slopes_of_length_1_and_none_at_0():
    matrices = [tf.Variable([[3.0, 0.0], [0.0, 4.0]]), tf.Variable(tf.zeros([2, 2]))]
    with tf.GradientTape() as tape:
        value = module.norms(matrices)
    assert value == 5
    first, second = tape.gradient(value, matrices)
    np.testing.assert_allclose(first, [[0.6, 0], [0, 0.8]], rtol=1e-6)
    np.testing.assert_array_equal(second, np.zeros([2, 2]))
    assert module.norms([]) == 0


def test_the_loss_of_encoders_by_hand():
    """γ1 2 + γ2 3 + γ3 5, and the norms over the number of training queries: 4 of 24 / 12."""
    names = ("translation_loss", "matching_loss", "monolingual_loss", "norms")
    parts = dict(zip(names, (2.0, 3.0, 5.0, 24.0)))
    own = settings.AdversarialSettings(gamma1=0.1, gamma2=10.0, gamma3=0.5, regularization=4.0)
    for stage, expected in ((1.0, 10 * 3 + 4 * 2 + 0.1 * 2 + 0.5 * 5), (0.0, 10 * 3 + 4 * 2)):
        assert module.encoder_loss(parts, own, 12, stage) == pytest.approx(expected)


def test_xcnn_by_hand():
    """-mean(cos(A, B) - cos(A, N)), in each stage of its own texts and documents alone."""
    queries, openings = ([[3.0, 4.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 1.0]])
    documents = [[1.0, 0.0], [0.0, 2.0], [0.0, 1.0], [5.0, 0.0]]  # both B, then both N
    task = object.__new__(pair_tasks.XcnnTask)
    task.model = SimpleNamespace(
        query_tower=lambda texts, training: tf.constant(texts),
        document_tower=lambda texts, training: tf.constant(texts),
        similarity=SmoothCosineSimilarity(0.0),
    )
    batch = SimpleNamespace(query=queries, translation=openings, documents=documents)
    first = -((1 - 0) + (math.sqrt(0.5) - math.sqrt(0.5))) / 2
    second = -((0.6 - 0.8) + (1 - 0)) / 2
    for task._first_stage, expected in ((1.0, first), (0.0, second)):
        loss, parts = task.batch_losses(batch)
        assert (float(loss), parts) == (pytest.approx(expected), {})


def test_s2net_by_hand():
    """Own cosines 0.9 and 0.5; a query meets the other document, a document the other query."""
    similarities = tf.constant([[0.9, 0.2], [0.4, 0.5]])
    margins = [0.9 - 0.2, 0.5 - 0.4, 0.9 - 0.4, 0.5 - 0.2]
    expected = sum(math.log1p(math.exp(-10 * margin)) for margin in margins) / 4
    assert float(pair_tasks.s2net_loss(similarities, 10.0)) == pytest.approx(expected)
    single = tf.constant([[0.3]])
    with tf.GradientTape() as tape:
        tape.watch(single)
        loss = pair_tasks.s2net_loss(single, 10.0)
    assert (float(loss), float(tape.gradient(loss, single)[0, 0])) == (0, 0)


def test_bags_are_binary_and_merged_without_unknown_words():
    tokens = Tokens.of(tf.constant([2, 2, 4, 1, 3, 9, 4]), tf.constant([3, 0, 2, 2]))
    found = pair_tasks.merged_bags(tokens, 5, merged=2)
    np.testing.assert_array_equal(found, [[0, 0, 1, 0, 1], [0, 0, 0, 1, 1]])
    odd = pair_tasks.merged_bags(pair_tasks.first_texts(tokens, tf.constant(3)), 5, merged=2)
    np.testing.assert_array_equal(odd, [[0, 0, 1, 0, 1], [0, 0, 0, 1, 0]])


def test_bae_rebuilds_both_bags_from_each_and_from_both_and_wants_codes_to_correlate():
    bags = [RANDOM.integers(2, size=(4, words)).astype(float) for words in (5, 6)]
    tables = [RANDOM.normal(size=(words, 3)) for words in (5, 6)]
    biases, c = [RANDOM.normal(size=words) for words in (5, 6)], RANDOM.normal(size=3)

    x, y = (bag @ table for bag, table in zip(bags, tables))
    rebuilding = 0.0
    for a in (c + x, c + y, c + x + y):
        for bag, table, bias in zip(bags, tables, biases):
            found = maths.sigmoid(maths.sigmoid(a) @ table.T + bias)
            losses = -bag * np.log(found) - (1 - bag) * np.log(1 - found)
            rebuilding += losses.sum(axis=1).mean()
    correlated = sum(np.corrcoef(x[:, k], y[:, k])[0, 1] for k in range(3))
    given = [[tf.constant(of, tf.float32) for of in both] for both in (bags, tables, biases)]
    loss, parts = pair_tasks.bae_loss(*given[:2], tf.constant(c, tf.float32), given[2])
    expected = {"rebuilding_loss": rebuilding, "correlation": correlated}
    found = {name: float(value) for name, value in parts.items()}
    assert found == pytest.approx(expected, rel=1e-4)
    assert float(loss) == pytest.approx(rebuilding - 4 * correlated, rel=1e-4)


def make(kind, **options):
    tower = kind(len(TABLE), 2, **options)
    tower.build()
    tower.embeddings.assign(TABLE)
    return tower


@cases("form", flat, padded)
def test_linear_is_the_weighted_sum(form):
    plain, weighted = make(LinearTower), make(LinearTower, token_weights="idf")
    expected = [TABLE[2] + 2 * TABLE[3], [0, 0], TABLE[4]]
    np.testing.assert_allclose(plain(form(TEXTS)), expected)
    np.testing.assert_allclose(weighted(form(TEXTS)), expected)  # all weights are 1 at first
    weighted.start_token_weights(IDF)
    expected = [2 * TABLE[2] + 2 * 0.5 * TABLE[3], [0, 0], 3 * TABLE[4]]
    np.testing.assert_allclose(weighted(form(TEXTS)), expected)
    assert len(weighted.trainable_weights) == 1
    with pytest.raises(ValueError, match="token_weights must be 'none' or 'idf'"):
        make(LinearTower, token_weights="learned")


def test_word_tanh_has_weight_and_bias_inside():
    tower = make(WordTanhTower, token_weights="idf")
    tower.start_token_weights(IDF)
    tower.trainable_weights[1].assign([0.25, -0.5])
    added = np.tanh(IDF[:, None] * TABLE + [0.25, -0.5])
    expected = [added[2] + 2 * added[3], [0, 0], added[4]]
    np.testing.assert_allclose(tower(flat(TEXTS)), expected, rtol=1e-6)
    assert len(tower.trainable_weights) == 2  # the weights of words are not


@pytest.fixture
def tower():
    return every_sequence_tower.random_reader(MaxLSTMTower)


def of_keras(tower, words):
    """Vectors of texts by Keras's LSTM, one text at a time, so that nothing is padded."""
    _, last, last_bias, *recurrent = map(tf_variable, tower.trainable_weights)
    layer = keras.layers.Bidirectional(keras.layers.LSTM(UNITS, return_sequences=True))
    layer(tf.zeros([1, 1, 3]))
    layer.set_weights([weight.numpy() for weight in recurrent])
    found = tf.concat([tf.reduce_max(layer(text[tf.newaxis]), axis=1) for text in words], axis=0)
    return tf.tanh(found @ last + last_bias)


def test_values_and_gradients_are_those_of_keras_without_padding(tower):
    full = [text for text in OF_LSTM if text]
    words = [tf.gather(tower.embeddings, text) for text in full]
    own_weights = [tf_variable(weight) for weight in tower.trainable_weights[1:]]
    with tf.GradientTape() as tape:
        tape.watch(words)
        expected = of_keras(tower, words)
    by_words = tape.gradient(expected, words)
    found = tower(flat(OF_LSTM))
    np.testing.assert_allclose(tf.gather(found, [0, 1, 3]), expected, 1e-4, 1e-5)
    np.testing.assert_array_equal(found[2], np.zeros(3))
    with tf.GradientTape() as tape:
        value = tower(flat(OF_LSTM), training=True)
    np.testing.assert_allclose(value, found, 1e-6)  # nothing is dropped unless asked
    gradient, *others = tape.gradient(value, [tf_variable(tower.embeddings), *own_weights])
    dense, summed = tf.convert_to_tensor(gradient), np.zeros(tower.embeddings.shape, np.float32)
    for text, of_text in zip(full, by_words):
        np.add.at(summed, text, of_text.numpy())
    np.testing.assert_allclose(dense, summed, 1e-3, 1e-5)
    assert all(np.any(tf.convert_to_tensor(one)) for one in others)  # every layer learns


def test_regularisation_counts_all_layers(tower):
    both = [(3, 4 * UNITS), (UNITS, 4 * UNITS)]
    assert [tuple(matrix.shape) for matrix in matrices(tower)] == [(2 * UNITS, 3), *both, *both]


def test_it_keeps_the_promises_of_sequence_towers(tmp_path):
    tests = every_sequence_tower
    tests.test_wider_padding_and_its_row_of_the_table_change_nothing(MaxLSTMTower)
    tests.test_two_tower_survives_save_and_reload_with_every_argument(MaxLSTMTower, tmp_path)


@cases("vectors", "bilingual", "random")
def test_layers_start_alike_behind_bilingual_vectors_alone(vectors, tiny, tmp_path):
    model = start(tiny(initial_vectors=vectors, tower="max_lstm"), tmp_path)[1]
    both = list(zip(matrices(model.query_tower), matrices(model.document_tower)))
    alike = [np.array_equal(one.numpy(), other.numpy()) for one, other in both]
    assert alike == [vectors == "bilingual"] * 5


def test_what_is_registered_is_what_the_classes_say():
    """Flags are checked by the facts of the registration, before TensorFlow is there."""
    for name in ("max_lstm", "linear", "word_tanh"):
        plugin = TOWERS.plugin(name)
        stated = {fact: value for fact, value in plugin.facts.items() if fact != "is_searched"}
        assert stated == {fact: getattr(plugin.load(), fact) for fact in stated}
