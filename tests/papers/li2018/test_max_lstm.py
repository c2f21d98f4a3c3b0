"""The LSTM tower that pools its states, against Keras; what it shares is in other files here."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.cases import cases
from tests.towers import test_towers as every_sequence_tower
from tests.towers.test_towers import flat
from tests.training.test_trainer import start
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.papers.li2018.towers import MaxLSTMTower, matrices
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.towers.lstm import UNITS

TEXTS = [[2, 3, 4, 5], [6], [], [7, 2, 2]]


@pytest.fixture
def tower():
    return every_sequence_tower.random_reader(MaxLSTMTower)


def of_keras(tower, words):
    """Vectors of texts by Keras's LSTM, one text at a time, so that nothing is padded."""
    _, last, last_bias, *recurrent = map(tf_variable, tower.trainable_weights)
    lstm = keras.layers.LSTM(UNITS, return_sequences=True)
    layer = keras.layers.Bidirectional(lstm)
    layer(tf.zeros([1, 1, 3]))
    layer.set_weights([weight.numpy() for weight in recurrent])
    found = tf.concat([tf.reduce_max(layer(text[tf.newaxis]), axis=1) for text in words], axis=0)
    return tf.tanh(found @ last + last_bias)


def test_values_and_gradients_are_those_of_keras_without_padding(tower):
    full = [text for text in TEXTS if text]
    words = [tf.gather(tower.embeddings, text) for text in full]
    own_weights = [tf_variable(weight) for weight in tower.trainable_weights[1:]]
    with tf.GradientTape() as tape:
        tape.watch(words)
        expected = of_keras(tower, words)
    by_words = tape.gradient(expected, words)
    found = tower(flat(TEXTS))
    np.testing.assert_allclose(tf.gather(found, [0, 1, 3]), expected, 1e-4, 1e-5)
    np.testing.assert_array_equal(found[2], np.zeros(3))
    with tf.GradientTape() as tape:
        value = tower(flat(TEXTS), training=True)
    np.testing.assert_allclose(value, found, 1e-6)  # nothing is dropped unless asked
    gradient, *others = tape.gradient(value, [tf_variable(tower.embeddings), *own_weights])
    dense, summed = tf.convert_to_tensor(gradient), np.zeros(tower.embeddings.shape, np.float32)
    for text, of_text in zip(full, by_words):
        np.add.at(summed, text, of_text.numpy())
    np.testing.assert_allclose(dense, summed, 1e-3, 1e-5)
    assert all(np.any(tf.convert_to_tensor(one)) for one in others)  # every layer learns


def test_regularisation_counts_all_layers(tower):
    shapes = [tuple(matrix.shape) for matrix in matrices(tower)]
    both = [(3, 4 * UNITS), (UNITS, 4 * UNITS)]
    assert shapes == [(2 * UNITS, 3), *both, *both]


def test_it_keeps_the_promises_of_sequence_towers(tmp_path):
    tests = every_sequence_tower
    tests.test_wider_padding_and_its_row_of_the_table_change_nothing(MaxLSTMTower)
    tests.test_two_tower_survives_save_and_reload_with_every_argument(MaxLSTMTower, tmp_path)


@cases("vectors", "bilingual", "random")
def test_layers_start_alike_behind_bilingual_vectors_alone(vectors, tiny, tmp_path):
    settings = tiny(initial_vectors=vectors, tower="max_lstm")
    model = start(settings, tmp_path)[1]
    both = list(zip(matrices(model.query_tower), matrices(model.document_tower)))
    alike = [np.array_equal(one.numpy(), other.numpy()) for one, other in both]
    assert alike == [vectors == "bilingual"] * 5


def test_what_is_registered_is_what_the_classes_say():
    """Flags are checked by the facts of the registration, before TensorFlow is there."""
    for name in ("max_lstm", "linear", "word_tanh"):
        plugin = TOWERS.plugin(name)
        stated = {fact: value for fact, value in plugin.facts.items() if fact != "is_searched"}
        assert stated == {fact: getattr(plugin.load(), fact) for fact in stated}
