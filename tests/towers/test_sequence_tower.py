"""What `SequenceTower` promises of every tower that reads word order."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.graphs import operations_in
from tests.oracles import towers as oracle
from tests.towers.test_average_pooling import (
    BUCKETS,
    NGRAMS,
    TEXTS,
    distinct,
    flat,
    padded,
    with_ngrams,
    word_vectors,
)
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.losses.ordinal import SmoothOrdinalSearchLoss
from tf_smoothclir.optimizers import LazyAdam
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.towers.cnn import CNNTower, largest_responses
from tf_smoothclir.towers.lstm import LSTMTower
from tf_smoothclir.towers.sequence_tower import dropped_out
from tf_smoothclir.two_tower.model import TwoTower

SIZE, DIM = 12, 3
BATCH = [[2, 2, 3], [], [3, 5, 7, 9, 2], [11]]

every_tower = pytest.mark.parametrize("kind", [CNNTower, LSTMTower])


def make(kind, **kwargs):
    table = keras.initializers.RandomNormal(stddev=1.0, seed=1)
    tower = kind(SIZE, DIM, embeddings_initializer=table, **kwargs)
    tower.build()
    return tower


def random_tower(kind, **options):
    tower = kind(SIZE, DIM, seed=2, **options)
    tower.build()
    for number, weight in enumerate(tower.trainable_weights):  # zeros would hide mixed-up weights
        weight.assign(np.random.default_rng(number).normal(0, 0.4, weight.shape))
    return tower


def vectors_by_hand(tower, texts):
    table, *rest = (weight.numpy() for weight in tower.trainable_weights)
    if isinstance(tower, CNNTower):
        of_text = oracle.cnn
    else:
        kernel, bias, *recurrent = rest
        of_text, rest = oracle.bidirectional_lstm, (recurrent[:3], recurrent[3:], kernel, bias)
    vectors = [of_text(table[text], *rest, tower.as_published) for text in texts]
    return np.reshape(vectors, [-1, DIM])


@every_tower
@pytest.mark.parametrize("as_published", [False, True])
@pytest.mark.parametrize("texts", [*TEXTS.values(), BATCH], ids=[*TEXTS, "batch"])
def test_equals_the_oracle_in_every_form(kind, texts, as_published):
    tower = random_tower(kind, as_published=as_published)
    vectors = tower(flat(texts))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(vectors, vectors_by_hand(tower, texts), rtol=1e-4, atol=1e-5)
    for form in (distinct, padded):
        np.testing.assert_array_equal(tower(form(texts)), vectors)
    tokens = dict.fromkeys(("ids", "lengths"), tf.TensorSpec([None], tf.int32))
    served = tf.function(lambda tokens: tower(tokens), input_signature=[tokens])
    np.testing.assert_allclose(served(flat(texts)), vectors, rtol=1e-5, atol=1e-6)


@every_tower
def test_wider_padding_and_its_row_of_the_table_change_nothing(kind):
    tower = make(kind)
    narrow = tower(padded(BATCH, 5)).numpy()
    tf_variable(tower.embeddings).scatter_nd_update([[0]], [[np.nan] * DIM])
    np.testing.assert_allclose(tower(padded(BATCH, 40)), narrow, rtol=1e-5, atol=1e-6)


@every_tower
@pytest.mark.parametrize("training", [False, True])
def test_empty_text_is_the_zero_vector_and_moves_nothing(kind, training):
    tower = make(kind)
    with tf.GradientTape() as tape:
        vectors = tower(flat([[], []]), training=training)
        loss = tf.reduce_sum(vectors + vectors**2)
    np.testing.assert_array_equal(vectors, np.zeros([2, DIM]))
    for gradient in tape.gradient(loss, tower.trainable_weights):
        np.testing.assert_array_equal(tf.convert_to_tensor(gradient), tf.zeros(gradient.shape))


@every_tower
@pytest.mark.parametrize("form", [flat, distinct])
@pytest.mark.parametrize("training", [False, True])
def test_gradient_of_the_table_is_sparse_and_names_each_row_once(kind, form, training):
    tower = make(kind)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(form(BATCH), training=training) ** 2)
    table, *others = tape.gradient(loss, tower.trainable_weights)
    assert isinstance(table, tf.IndexedSlices)
    assert sorted(table.indices.numpy()) == [2, 3, 5, 7, 9, 11]
    assert np.isfinite(table.values).all()
    assert all(np.isfinite(gradient).all() and np.any(gradient) for gradient in others)


@every_tower
@pytest.mark.parametrize("seed", range(3))
def test_gradients_are_those_of_finite_differences(kind, seed):
    # TensorFlow's own gradient of BlockLSTMV2 fails here: it takes the gates in another order.
    tower, random = random_tower(kind), np.random.default_rng(seed)
    upstream = random.normal(size=[len(BATCH), DIM]).astype("f4")

    def loss():
        return tf.reduce_sum(tower(flat(BATCH)) * upstream)

    with tf.GradientTape() as tape:
        value = loss()
    for weight, gradient in zip(
        tower.trainable_weights, tape.gradient(value, tower.trainable_weights)
    ):
        before, direction = weight.numpy(), random.normal(size=weight.shape).astype("f4")
        ends = []
        for step in (2e-3, -2e-3):
            weight.assign(before + step * direction)
            ends.append(float(loss()))
        weight.assign(before)
        expected = np.sum(tf.convert_to_tensor(gradient).numpy() * direction)
        assert (ends[0] - ends[1]) / 4e-3 == pytest.approx(expected, abs=2e-3, rel=1e-2), (
            weight.name
        )


@pytest.mark.parametrize("rate", [1e-9, 0.5, 1 - 1e-9])
@pytest.mark.parametrize("tokens", [0, 1, 333])
def test_any_share_of_any_number_of_entries_may_be_dropped(rate, tokens):
    # Two entries share 32 random bits: 333 * 3 is odd. A share near 1 is no int16.
    kept = dropped_out(tf.ones([tokens, DIM]), rate, tf.constant([1, 2], tf.int64)).numpy()
    assert kept.shape == (tokens, DIM)
    assert np.isfinite(kept).all()
    if tokens == 333:
        assert np.mean(kept == 0) == pytest.approx(rate, abs=0.05)
        assert kept[kept > 0] == pytest.approx(1 / (1 - rate), rel=1e-3)


@every_tower
def test_seed_decides_initial_weights_and_dropout(kind):
    first, same, other = (make(kind, seed=seed) for seed in (3, 3, 4))
    for ours, theirs in zip(first.get_weights(), same.get_weights()):
        np.testing.assert_array_equal(ours, theirs)
    assert any(np.any(a != b) for a, b in zip(first.get_weights(), other.get_weights()))
    other.set_weights(first.get_weights())
    assert np.any(first(flat(BATCH), training=True) != other(flat(BATCH), training=True))


def two_tower(kind, **options):
    model = TwoTower(make(kind, **options), make(kind, seed=5))
    model.build()
    return model


def pairs():
    texts = [[2, 3], [4, 5, 6], [7], [8, 9, 10, 11]]
    inputs = {"query": padded(texts), "document": padded([text[::-1] for text in texts])}
    return inputs, tf.constant([2, 0, 1, 0])


@every_tower
def test_dropout_only_in_training(kind):
    tower = make(kind)
    vectors = tower(flat(BATCH))
    np.testing.assert_array_equal(tower(flat(BATCH), training=False), vectors)
    dropped = tower(flat(BATCH), training=True)
    assert np.abs(dropped - vectors).max() > 0.01
    assert np.abs(tower(flat(BATCH), training=True) - dropped).max() > 0.01
    without = make(kind, dropout=0.0)
    np.testing.assert_array_equal(without(flat(BATCH), training=True), without(flat(BATCH)))
    model = two_tower(kind)
    model.compile(LazyAdam(0.05), SmoothOrdinalSearchLoss())
    model.train_step(pairs())
    assert int(model.query_tower._dropouts) == 1  # a step reaches the towers as training


@every_tower
def test_two_tower_survives_save_and_reload_with_every_argument(kind, tmp_path):
    options = {"train_embeddings": False, "dropout": 0.1, "as_published": True, "seed": 9}
    model = two_tower(kind, **options)
    inputs, _ = pairs()
    scores = model(inputs)
    model(inputs, training=True)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(reloaded(inputs), scores)
    np.testing.assert_array_equal(reloaded(inputs, training=True), model(inputs, training=True))
    tower = reloaded.query_tower
    assert tower.get_config() == model.query_tower.get_config()
    assert {name: getattr(tower, name) for name in options} == options


@pytest.mark.parametrize(
    "texts",
    [[0, 0, 0, 1, 1], [0, 2, 2], [0, 0, -1, -1, 2, 2, -1], [-1], []],
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


def test_random_words_leave_the_filters_where_tanh_has_a_slope():
    # Of word vectors from N(0, 1), which average pooling begins with, the largest of 30 responses
    # is about 2: tanh is flat there, and training hardly began in three epochs.
    tower = CNNTower(1000, 64, seed=1)
    tower.build()
    words = np.random.default_rng(1).integers(2, 1000, 8 * 30)
    features = tower.read(tf.gather(tower.embeddings, words), tf.fill([8], 30))
    assert np.mean(1 - np.square(features)) > 0.2


def test_directions_begin_with_different_weights_and_an_open_forget_gate():
    tower = LSTMTower(SIZE, DIM, seed=2)
    tower.build()
    recurrent = [weight.numpy() for weight in tower.trainable_weights[3:]]
    forward, backward = recurrent[:3], recurrent[3:]
    assert np.abs(forward[0] - backward[0]).max() > 0.01
    assert np.abs(forward[1] - backward[1]).max() > 0.01
    for _, _, bias in (forward, backward):
        np.testing.assert_array_equal(bias, np.repeat([0, 1, 0, 0], 64))


@pytest.mark.parametrize("texts", [[[2, 3, 4]], [[]], [[2], [3, 4], [5, 6, 7]]])
@pytest.mark.parametrize("as_published", [False, True])
def test_gradients_of_texts_add_up_in_any_batch(texts, as_published):
    # A half of the batch without a text had the gradient of whatever was in the memory.
    tower = random_tower(LSTMTower, as_published=as_published)

    def gradients(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tower(flat(batch)) ** 2)
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, tower.trainable_weights)]

    alone = gradients(texts)
    together, between = gradients([*texts, [7, 6], *texts]), gradients([[7, 6], []])
    for one, all_of_them, other in zip(alone, together, between):
        np.testing.assert_allclose(all_of_them, 2 * one + other, rtol=1e-4, atol=1e-6)


def test_graph_has_the_fused_kernel_and_no_loop():
    tower = random_tower(LSTMTower)
    tokens = {"ids": tf.TensorSpec([None], tf.int32), "lengths": tf.TensorSpec([None], tf.int32)}
    operations = operations_in(tf.function(tower.__call__).get_concrete_function(tokens).graph)
    assert "BlockLSTM" in operations
    assert not operations & {"While", "StatelessWhile"}


WORDS = [[2, 3, 2], [], [5, 6, 4], [1]]


@pytest.mark.parametrize("kind", TOWERS.values(), ids=TOWERS)
def test_every_tower_has_word_vectors_with_ngrams_and_ids_without_them_are_an_error(kind):
    tower, plain = kind(5, DIM, ngram_buckets=BUCKETS), kind(len(NGRAMS), DIM)
    tower.build()
    plain.build()
    for weight, other in zip(plain.weights[1:], tower.weights[2:]):
        weight.assign(other)
    plain.embeddings.assign(word_vectors(tower))
    found, expected = tower(with_ngrams(WORDS)), plain(distinct(WORDS))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    for form in (distinct, padded):
        with pytest.raises(ValueError, match=r"tokens: .* ngram_buckets .* SubwordTextEncoder"):
            tower(form(WORDS))
