"""DSSM-LSTM against a NumPy oracle; what it shares with DSSM-CNN is in `test_sequence_tower`."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.graphs import operations_in
from tests.oracles import towers as oracle
from tests.towers.test_average_pooling import TEXTS, flat, padded
from tf_smoothclir.towers.lstm import LSTMTower

SIZE, DIM, UNITS = 8, 3, 64


@pytest.fixture
def tower():
    tower = LSTMTower(SIZE, DIM, seed=2)
    tower.build()
    return tower


def parts(tower):
    """Table, forward and backward weights, kernel and bias, as the oracle takes them."""
    table, kernel, bias, *recurrent = (weight.numpy() for weight in tower.trainable_weights)
    shapes = [(DIM, 4 * UNITS), (UNITS, 4 * UNITS), (4 * UNITS,)]
    assert [part.shape for part in recurrent] == 2 * shapes
    return table, (recurrent[:3], recurrent[3:], kernel, bias)


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("form", [flat, padded])
def test_equals_the_oracle(tower, form, texts):
    table, rest = parts(tower)
    expected = [oracle.bidirectional_lstm(table[text], *rest) for text in texts]
    vectors = tower(form(texts))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(vectors, np.reshape(expected, [-1, DIM]), rtol=1e-4, atol=1e-5)


def test_directions_begin_with_different_weights(tower):
    _, (forward, backward, *_) = parts(tower)
    assert np.abs(forward[0] - backward[0]).max() > 0.01
    assert np.abs(forward[1] - backward[1]).max() > 0.01


def test_settings_are_those_of_the_fused_kernel(tower):
    for layer in (tower._recurrent.forward_layer, tower._recurrent.backward_layer):
        assert (keras.activations.tanh, keras.activations.sigmoid) == (
            layer.activation,
            layer.recurrent_activation,
        )
        assert layer.use_bias
        assert not layer.unroll
        assert layer.recurrent_dropout == 0


@pytest.mark.skipif(tf.config.list_physical_devices("GPU"), reason="there is a GPU")
def test_graphs_without_a_gpu_have_no_cudnn_kernel(tower):
    """Tracing that kernel would double the time of tracing."""
    tokens = {"ids": tf.TensorSpec([None], tf.int32), "lengths": tf.TensorSpec([None], tf.int32)}
    graph = tf.function(tower.__call__).get_concrete_function(tokens).graph
    operations = operations_in(graph)
    assert operations & {"While", "StatelessWhile"}
    assert not [name for name in operations if name.startswith("Cudnn")]
