"""DSSM-CNN against a NumPy oracle; what it shares with DSSM-LSTM is in `test_sequence_tower`."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.oracles import towers as oracle
from tests.towers.test_average_pooling import TEXTS, flat, padded
from tf_smoothclir.towers.cnn import CNNTower, largest_responses

SIZE, DIM = 8, 3
NORMAL = keras.initializers.RandomNormal(stddev=1.0, seed=1)


def make(**options):
    tower = CNNTower(SIZE, DIM, seed=2, **options)
    tower.build()
    for weight in tower.trainable_weights:  # biases of zero would hide where they stand
        weight.assign(np.random.default_rng(len(weight.shape)).normal(0, 0.4, weight.shape))
    return tower


def parts(tower):
    """Table, filters, biases of the filters, kernel and bias, as the oracle takes them."""
    table, *rest = (weight.numpy() for weight in tower.trainable_weights)
    assert [part.shape for part in rest] == [(3 * DIM, 300), (300,), (300, DIM), (DIM,)]
    return table, rest


@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("form", [flat, padded])
def test_equals_the_oracle(form, texts, as_published):
    tower = make(as_published=as_published)
    table, rest = parts(tower)
    expected = [oracle.cnn(table[text], *rest, as_published) for text in texts]
    vectors = tower(form(texts))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(vectors, np.reshape(expected, [-1, DIM]), rtol=1e-5, atol=1e-6)


def test_window_sees_one_neighbour_on_each_side():
    # One filter sums the words before and after; max pooling and the rest pass it on.
    tower = CNNTower(SIZE, 1, embeddings_initializer="zeros")
    tower.build()
    table, filters, biases, kernel, bias = tower.trainable_weights
    table.assign(np.arange(SIZE, dtype="f4")[:, None] / 100)
    filters.assign(np.float32([[1], [0], [1]]) * np.eye(1, 300, dtype="f4"))
    kernel.assign(np.eye(300, 1, dtype="f4"))
    # 2+4 of the middle token is more than 0+3 and 3+0 at the edges; a lone token has zeros around.
    expected = np.tanh(np.tanh([[0.06], [0.03], [0.0]]))
    np.testing.assert_allclose(tower(flat([[2, 3, 4], [3, 2], [7]])), expected, rtol=1e-5)
    assert not np.any(biases)
    assert not np.any(bias)


def test_as_published_windows_lie_inside_the_text_and_nothing_bounds_the_vector():
    # One filter sums the first and the third word of a window; the others are zero.
    tower = CNNTower(SIZE, 1, embeddings_initializer="zeros", as_published=True)
    tower.build()
    table, filters, _, kernel, _ = tower.trainable_weights
    table.assign(np.arange(SIZE, dtype="f4")[:, None] / 100)
    filters.assign(np.float32([[1], [0], [1]]) * np.eye(1, 300, dtype="f4"))
    kernel.assign(100 * np.eye(300, 1, dtype="f4"))
    # 2+4 and 3+1, not 7+0 at the edge; texts of one or two words have one window.
    texts = [[2, 3, 4, 1], [3, 2], [7], [2, 6, 7]]
    expected = 100 * np.tanh([[0.06], [0.03], [0.07], [0.09]])
    np.testing.assert_allclose(tower(flat(texts)), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "texts",
    [[0, 0, 0, 1, 1], [0, 2, 2], [0, 0, -1, -1, 2, 2, -1], [-1], []],
    ids=["all", "gap", "between", "nowhere", "none"],
)
def test_gradients_of_the_largest_responses_are_those_of_tensorflow(texts):
    random = np.random.default_rng(3)
    stream = random.integers(-1, 2, [len(texts) + 1, 2]).astype("f4")  # small numbers: with ties
    filters = random.integers(-1, 2, [4, 7]).astype("f4")

    def of_tensorflow(stream, texts, filters, batch):
        windows = tf.concat([stream[:-1], stream[1:]], axis=1)
        return tf.math.unsorted_segment_max(tf.matmul(windows, filters), texts, batch)

    found = []
    for largest in (largest_responses, of_tensorflow):
        given = [tf.constant(stream), tf.constant(filters)]
        with tf.GradientTape() as tape:
            tape.watch(given)
            highest = largest(given[0], tf.constant(texts, tf.int32), given[1], tf.constant(3))
            total = tf.reduce_sum(tf.clip_by_value(highest, -9, 9) * np.arange(1.0, 8, dtype="f4"))
        found.append((highest, *tape.gradient(total, given)))
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, 1e-6)
    assert max(texts, default=-1) < 0 or all(map(np.any, found[0]))


def test_maximum_may_be_negative():
    # Zero padding in the pooling would win against negative responses.
    tower = CNNTower(SIZE, 1, embeddings_initializer="ones")
    tower.build()
    _, filters, _, kernel, _ = tower.trainable_weights
    filters.assign(-np.eye(3, 300, k=-1, dtype="f4"))  # minus the token itself
    kernel.assign(np.eye(300, 1, dtype="f4"))
    expected = np.tanh(np.tanh(-1.0))
    np.testing.assert_allclose(tower(padded([[2], [2, 3, 4]], 9)), [[expected]] * 2, rtol=1e-5)


@pytest.mark.parametrize(("start", "is_flat"), [("random_normal", False), (NORMAL, True)])
def test_random_words_leave_the_filters_where_tanh_has_a_slope(start, is_flat):
    # Of word vectors from N(0, 1), which average pooling begins with, the largest of 30 responses
    # is about 2: tanh is flat there, and training hardly began in three epochs.
    tower = CNNTower(1000, 64, embeddings_initializer=start, seed=1)
    tower.build()
    words = np.random.default_rng(1).integers(2, 1000, 8 * 30)
    features = tower.read(tf.gather(tower.embeddings, words), tf.fill([8], 30))
    assert (np.mean(1 - np.square(features)) < 0.2) == is_flat
