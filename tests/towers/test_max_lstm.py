"""The LSTM tower that pools its states, against Keras; what it shares is in other files here."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.towers.test_average_pooling import flat
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.towers.lstm import UNITS
from tf_smoothclir.towers.max_lstm import MaxLSTMTower

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
