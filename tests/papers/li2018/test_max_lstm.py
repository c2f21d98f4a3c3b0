"""The LSTM tower that pools its states, against Keras; what it shares is in other files here."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.towers import test_sequence_tower as every_sequence_tower
from tests.towers.test_average_pooling import flat
from tests.training.test_trainer import start
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.papers.li2018.max_lstm import MaxLSTMTower
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.towers.lstm import UNITS

TEXTS = [[2, 3, 4, 5], [6], [], [7, 2, 2]]


@pytest.fixture
def tower():
    tower = MaxLSTMTower(8, 3, seed=2)
    tower.build()
    for number, weight in enumerate(tower.trainable_weights):
        weight.assign(np.random.default_rng(number).normal(0, 0.4, weight.shape))
    return tower


def of_keras(tower, words):
    """Vectors of texts by Keras's LSTM, one text at a time, so that nothing is padded."""
    _, dense, bias, *recurrent = map(tf_variable, tower.trainable_weights)
    lstm = keras.layers.LSTM(UNITS, return_sequences=True)
    layer = keras.layers.Bidirectional(lstm)
    layer(tf.zeros([1, 1, 3]))
    layer.set_weights([weight.numpy() for weight in recurrent])
    highest = [tf.reduce_max(layer(text[tf.newaxis]), axis=1) for text in words]
    return tf.tanh(tf.concat(highest, axis=0) @ dense + bias)


def test_values_and_gradients_are_those_of_keras_without_padding(tower):
    full = [text for text in TEXTS if text]
    words = [tf.gather(tower.embeddings, text) for text in full]
    with tf.GradientTape() as tape:
        tape.watch(words)
        expected = of_keras(tower, words)
    by_words = tape.gradient(expected, words)
    found = tower(flat(TEXTS))
    np.testing.assert_allclose(tf.gather(found, [0, 1, 3]), expected, 1e-4, 1e-5)
    np.testing.assert_array_equal(found[2], np.zeros(3))
    with tf.GradientTape() as tape:
        value = tower(flat(TEXTS), training=True)
    gradient = tape.gradient(value, tf_variable(tower.embeddings))
    dense = tf.math.unsorted_segment_sum(gradient.values, gradient.indices, 8)
    summed = np.zeros([8, 3], np.float32)
    for text, of_text in zip(full, by_words):
        np.add.at(summed, text, of_text.numpy())
    np.testing.assert_allclose(dense, summed, 1e-3, 1e-5)


def test_a_text_of_one_word_is_its_state(tower):
    """The maximum of one state is the state."""
    _, dense, bias, *recurrent = (weight.numpy() for weight in tower.trainable_weights)
    lstm = keras.layers.LSTM(UNITS)
    word = tf.gather(tower.embeddings, [[6]])
    states = []
    for weights in (recurrent[:3], recurrent[3:]):
        lstm(word)
        lstm.set_weights(weights)
        states.append(lstm(word))
    expected = np.tanh(np.concatenate(states, axis=1) @ dense + bias)
    np.testing.assert_allclose(tower(flat([[6]])), expected, 1e-4, 1e-5)


def test_drops_nothing_unless_asked(tower):
    vectors = [tower(flat(TEXTS), training=training) for training in (True, True, False)]
    for one in vectors[1:]:
        np.testing.assert_allclose(one, vectors[0], 1e-6)


def test_matrices_are_those_of_the_layers(tower):
    shapes = [tuple(matrix.shape) for matrix in tower.matrices()]
    both = [(3, 4 * UNITS), (UNITS, 4 * UNITS)]
    assert shapes == [(2 * UNITS, 3), *both, *both]


@pytest.fixture
def deeper():
    tower = MaxLSTMTower(8, 3, projection_layers=2, seed=2)
    tower.build()
    for number, weight in enumerate(tower.trainable_weights):
        weight.assign(np.random.default_rng(number).normal(0, 0.4, weight.shape))
    return tower


def test_two_layers_are_the_arithmetic_of_the_paper(deeper):
    """z = tanh(A tanh(B m + c) + b), with an LSTM in NumPy."""
    weights = [weight.numpy() for weight in deeper.trainable_weights]
    table, last, last_bias, *recurrent, first, first_bias = weights
    for text, found in zip(TEXTS, deeper(flat(TEXTS)).numpy()):
        if not text:
            np.testing.assert_array_equal(found, np.zeros(3))
            continue
        words = table[text]
        forward = states_by_hand(words, *recurrent[:3])
        backward = states_by_hand(words[::-1], *recurrent[3:])
        highest = np.concatenate([forward.max(axis=0), backward.max(axis=0)])
        expected = np.tanh(np.tanh(highest @ first + first_bias) @ last + last_bias)
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def states_by_hand(words, kernel, recurrent, bias):
    """States of an LSTM after each word, `[words, units]`; gates in Keras's order i, f, c, o."""
    state, cell, found = np.zeros(UNITS), np.zeros(UNITS), []
    for word in words:
        gates = np.split(word @ kernel + state @ recurrent + bias, 4)
        enter, forget, exit_ = (1 / (1 + np.exp(-gates[n])) for n in (0, 1, 3))
        cell = forget * cell + enter * np.tanh(gates[2])
        state = exit_ * np.tanh(cell)
        found.append(state)
    return np.array(found)


def test_gradients_reach_both_layers(deeper):
    with tf.GradientTape() as tape:
        value = tf.reduce_sum(deeper(flat(TEXTS), training=True) ** 2)
    gradients = tape.gradient(value, deeper.trainable_weights)
    assert len(gradients) == 11
    assert all(np.any(tf.convert_to_tensor(gradient)) for gradient in gradients)


def test_regularisation_counts_the_matrix_of_the_first_layer(deeper):
    both = [(3, 4 * UNITS), (UNITS, 4 * UNITS)]
    shapes = [tuple(matrix.shape) for matrix in deeper.matrices()]
    assert shapes == [(3, 3), *both, *both, (2 * UNITS, 3)]


def test_configuration_keeps_the_layers_and_an_older_one_has_one(deeper):
    config = deeper.get_config()
    again = MaxLSTMTower.from_config(config)
    again.build()
    for own, given in zip(again.trainable_weights, deeper.trainable_weights, strict=True):
        own.assign(given)
    np.testing.assert_array_equal(again(flat(TEXTS)), deeper(flat(TEXTS)))
    del config["projection_layers"]
    assert MaxLSTMTower.from_config(config).projection_layers == 1


@pytest.mark.parametrize("layers", [0, 3])
def test_other_numbers_of_layers_are_an_error(layers):
    with pytest.raises(ValueError, match=f"projection_layers must be 1 or 2, but is {layers}"):
        MaxLSTMTower(8, projection_layers=layers)


@pytest.mark.parametrize(
    "promise",
    [
        "wider_padding_and_its_row_of_the_table_change_nothing",
        "batch_without_a_text_has_no_vector",
        "gradient_of_the_table_equals_finite_differences",
        "one_lazy_step_changes_the_rows_that_occur_and_every_other_weight",
        "frozen_table_leaves_the_rest_to_train",
        "dropout_continues_exactly_from_saved_weights",
        "config_round_trip_keeps_every_argument",
    ],
)
def test_it_keeps_the_promises_of_sequence_towers(promise):
    getattr(every_sequence_tower, f"test_{promise}")(MaxLSTMTower)


def test_it_is_saved_as_other_sequence_towers_are(tmp_path):
    every_sequence_tower.test_two_tower_survives_save_and_reload(MaxLSTMTower, tmp_path)
    every_sequence_tower.test_saved_model_gives_the_same_vectors_with_core_ops_only(
        MaxLSTMTower, tmp_path / "saved"
    )


def test_projection_layers_reach_both_towers(tiny, tmp_path):
    deeper = start(tiny(tower="max_lstm", projection_layers=2), tmp_path)[1]
    assert deeper.query_tower.projection_layers == deeper.document_tower.projection_layers == 2


@pytest.mark.parametrize("vectors", ["bilingual", "random"])
def test_layers_start_alike_behind_bilingual_vectors_alone(vectors, tiny, tmp_path):
    model = start(tiny(initial_vectors=vectors, tower="max_lstm"), tmp_path)[1]
    both = zip(model.query_tower.matrices(), model.document_tower.matrices())
    alike = [np.array_equal(one.numpy(), other.numpy()) for one, other in both]
    assert alike == [vectors == "bilingual"] * 5


def test_what_is_registered_is_what_the_classes_say():
    """Flags are checked by the facts of the registration, before TensorFlow is there."""
    for name in ("max_lstm", "linear", "word_tanh"):
        plugin = TOWERS.plugin(name)
        stated = {fact: value for fact, value in plugin.facts.items() if fact != "is_searched"}
        assert stated == {fact: getattr(plugin.load(), fact) for fact in stated}
