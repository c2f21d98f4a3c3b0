"""DSSM-LSTM against a NumPy oracle; what it shares with DSSM-CNN is in `test_sequence_tower`."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.graphs import operations_in
from tests.oracles import towers as oracle
from tests.towers.test_average_pooling import TEXTS, flat, padded
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.towers.lstm import LSTMTower

SIZE, DIM, UNITS = 8, 3, 64


@pytest.fixture
def tower():
    return make()


def make(**options):
    tower = LSTMTower(SIZE, DIM, seed=2, **options)
    tower.build()
    for number, weight in enumerate(tower.trainable_weights):  # zeros would hide mixed-up gates
        weight.assign(np.random.default_rng(number).normal(0, 0.4, weight.shape))
    return tower


def parts(tower):
    """Table, forward and backward weights, kernel and bias, as the oracle takes them."""
    table, kernel, bias, *recurrent = (weight.numpy() for weight in tower.trainable_weights)
    shapes = [(DIM, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,)]
    assert [part.shape for part in recurrent] == 2 * shapes
    return table, (recurrent[:3], recurrent[3:], kernel, bias)


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("form", [flat, padded])
def test_equals_the_oracle(form, texts, as_published):
    tower = make(as_published=as_published)
    table, rest = parts(tower)
    expected = [oracle.bidirectional_lstm(table[text], *rest, as_published) for text in texts]
    vectors = tower(form(texts))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(vectors, np.reshape(expected, [-1, DIM]), rtol=1e-4, atol=1e-5)


def test_directions_begin_with_different_weights_and_an_open_forget_gate():
    tower = LSTMTower(SIZE, DIM, seed=2)
    tower.build()
    _, (forward, backward, *_) = parts(tower)
    assert np.abs(forward[0] - backward[0]).max() > 0.01
    assert np.abs(forward[1] - backward[1]).max() > 0.01
    for _, _, bias in (forward, backward):
        np.testing.assert_array_equal(bias, np.repeat([0, 1, 0, 0], UNITS))


def test_values_and_gradients_are_those_of_keras(tower):
    # TensorFlow's own gradient of BlockLSTMV2 fails here: it takes the gates in another order.
    texts = [[2, 3, 4, 5], [6], [], [7, 2, 2]]
    _, (forward, backward, *_) = parts(tower)
    layer = keras.layers.Bidirectional(keras.layers.LSTM(UNITS))
    layer(tf.zeros([1, 1, DIM]))
    layer.set_weights([*forward, *backward])
    lengths = [len(text) for text in texts]
    words = tf.gather(tower.embeddings, np.concatenate(texts).astype(int))
    with tf.GradientTape() as tape:
        tape.watch(words)
        ours = tower.read(words, tf.constant(lengths))
        sums = tf.reduce_sum(ours[:2] ** 2) + tf.reduce_sum(ours[3] ** 2)
    recurrent = tower.trainable_weights[3:]
    found = tape.gradient(sums, [words, *map(tf_variable, recurrent)])
    with tf.GradientTape() as tape:
        tape.watch(words)
        states = [layer(part[tf.newaxis]) for part in tf.split(words, lengths) if len(part)]
        sums = tf.reduce_sum(tf.concat(states, axis=0) ** 2)
    expected = tape.gradient(sums, [words, *map(tf_variable, layer.trainable_weights)])
    np.testing.assert_allclose(tf.gather(ours, [0, 1, 3]), tf.concat(states, 0), 1e-4, 1e-6)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("texts", [[[2, 3, 4]], [[]], [[2], [3, 4], [5, 6, 7]]])
@pytest.mark.parametrize("as_published", [False, True])
def test_gradients_of_texts_add_up_in_any_batch(texts, as_published):
    # A half of the batch without a text had the gradient of whatever was in the memory.
    tower = make(as_published=as_published)

    def gradients(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tower(flat(batch)) ** 2)
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, tower.trainable_weights)]

    alone = gradients(texts)
    together, between = gradients([*texts, [7, 6], *texts]), gradients([[7, 6], []])
    for one, all_of_them, other in zip(alone, together, between):
        np.testing.assert_allclose(all_of_them, 2 * one + other, rtol=1e-4, atol=1e-6)


def test_as_published_the_forward_state_knows_the_first_word_alone():
    tower = make(as_published=True)
    texts = [[2, 3, 4], [2, 5], [3, 2, 4]]
    words = tf.gather(tower.embeddings, np.concatenate(texts).astype(int))
    states = tower.read(words, tf.constant([3, 2, 3])).numpy()
    forward, backward = np.split(states, 2, axis=1)
    np.testing.assert_array_equal(forward[0], forward[1])
    assert np.abs(forward[0] - forward[2]).max() > 1e-3
    assert np.abs(backward[0] - backward[1]).max() > 1e-3


def test_graph_has_the_fused_kernel_and_no_loop(tower):
    tokens = {"ids": tf.TensorSpec([None], tf.int32), "lengths": tf.TensorSpec([None], tf.int32)}
    operations = operations_in(tf.function(tower.__call__).get_concrete_function(tokens).graph)
    assert "BlockLSTM" in operations
    assert not operations & {"While", "StatelessWhile"}
