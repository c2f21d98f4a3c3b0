"""The average-pooling tower against means taken by hand in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.text.tokens import DistinctTokens, Tokens
from tf_smoothclir.towers.average_pooling import AveragePoolingTower

TEXTS = {
    "plain": [[2, 3], [4, 5, 6]],
    "repeated tokens": [[2, 2, 3], [3, 3, 3]],
    "empty first": [[], [2]],
    "empty in between": [[2, 3], [], [4]],
    "empty last": [[2, 3], [], []],
    "all empty": [[], [], []],
    "no text": [],
    "one token": [[7]],
}
SIZE, DIM = 8, 3


def flat(texts):
    ids = [token for text in texts for token in text]
    return {
        "ids": tf.constant(ids, tf.int32),
        "lengths": tf.constant([len(text) for text in texts], tf.int32),
    }


def with_texts(texts):
    return Tokens.of(**flat(texts))


def distinct(texts):
    return DistinctTokens.of(with_texts(texts))


def padded(texts, length=5):
    return tf.constant(
        [text + [0] * (length - len(text)) for text in texts], tf.int32, [len(texts), length]
    )


def mean_by_hand(table, texts):
    means = [np.tanh(np.mean(table[text], axis=0)) if text else np.zeros(DIM) for text in texts]
    return np.reshape(means, [len(texts), DIM])


@pytest.fixture
def tower():
    tower = AveragePoolingTower(
        SIZE, DIM, embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0, seed=1)
    )
    tower.build()
    return tower


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("form", [flat, with_texts, distinct, padded])
def test_mean_over_real_tokens_only_then_tanh(tower, form, texts):
    vectors = tower(form(texts))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(
        vectors, mean_by_hand(tower.embeddings.numpy(), texts), rtol=1e-6, atol=1e-7
    )


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_flat_and_padded_forms_agree_bitwise(tower, texts):
    np.testing.assert_array_equal(tower(flat(texts)), tower(padded(texts)))


def test_padding_never_enters_the_mean(tower):
    between = tower(tf.constant([[0, 2, 0, 3, 0]]))
    np.testing.assert_allclose(between, tower(flat([[2, 3]])), rtol=1e-6)
    # Not even its row of the table counts, not even if that is NaN.
    tf_variable(tower.embeddings).scatter_nd_update([[0]], [[np.nan] * DIM])
    np.testing.assert_array_equal(tower(tf.constant([[0, 2, 0, 3, 0]])), between)


def test_unknown_token_is_a_token_like_any_other(tower):
    expected = np.tanh(tower.embeddings.numpy()[[1, 2]].mean(axis=0, keepdims=True))
    np.testing.assert_allclose(tower(padded([[1, 2]])), expected, rtol=1e-6)


@pytest.mark.parametrize("form", [flat, padded])
def test_empty_texts_have_a_finite_gradient_of_no_row(tower, form):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(form([[], []])))
    gradient = tape.gradient(loss, tower.embeddings)
    assert gradient.indices.shape[0] == 0


@pytest.mark.parametrize("form", [flat, padded])
def test_gradient_is_sparse_names_each_row_once_and_equals_numpy(tower, form):
    texts = [[2, 2, 3], [], [3, 5], [2]]
    upstream = np.arange(1, 1 + len(texts) * DIM, dtype="f4").reshape(-1, DIM)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(form(texts)) * upstream)
    gradient = tape.gradient(loss, tower.embeddings)

    assert isinstance(gradient, tf.IndexedSlices)
    assert sorted(gradient.indices.numpy()) == [2, 3, 5]
    # d tanh(m)/dm = 1 - tanh(m)², and each of n tokens has 1/n of the mean.
    table = tower.embeddings.numpy().astype("f8")
    expected = np.zeros_like(table)
    for text, row in zip(texts, upstream):
        for token in text:
            slope = 1 - np.tanh(table[text].mean(axis=0)) ** 2
            expected[token] += row * slope / len(text)
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected, rtol=1e-5, atol=1e-7)


def fit_once(tower, texts):
    """Makes one step of gradient descent towards ones; returns the rows of the table it changed."""
    before = tower.embeddings.numpy()
    model = keras.Sequential([tower])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.train_on_batch(padded(texts), tf.ones([len(texts), DIM]))
    return np.flatnonzero((tower.embeddings.numpy() != before).any(axis=1)).tolist()


def test_one_step_changes_every_row_that_occurs_and_no_other(tower):
    assert fit_once(tower, [[2, 2, 3], [], [3, 6]]) == [2, 3, 6]


def test_frozen_tower_stays_bitwise_as_it_is():
    tower = AveragePoolingTower(SIZE, DIM, trainable=False)
    tower.build()
    assert tower.trainable_weights == []
    before = tower.embeddings.numpy()
    # Another layer has something to learn, so that the step is a real one.
    model = keras.Sequential([tower, keras.layers.Dense(DIM)])
    model.compile(keras.optimizers.SGD(1.0), "mse")
    model.train_on_batch(padded([[2, 3], [4]]), tf.ones([2, DIM]))
    np.testing.assert_array_equal(tower.embeddings, before)


def test_default_scale_of_the_table_is_one():
    # With epsilon = 1, short vectors would have small scores; the authors draw from N(0, 1).
    tower = AveragePoolingTower(20_000, 4)
    tower.build()
    assert np.std(tower.embeddings) == pytest.approx(1, abs=0.02)
    assert np.mean(tower.embeddings) == pytest.approx(0, abs=0.02)


def test_seeded_initializer_gives_the_same_table():
    tables = []
    for _ in range(2):
        tower = AveragePoolingTower(
            SIZE, DIM, embeddings_initializer=keras.initializers.RandomNormal(seed=5)
        )
        tower.build()
        tables.append(tower.embeddings.numpy())
    np.testing.assert_array_equal(*tables)


def test_config_round_trip_keeps_every_argument():
    tower = AveragePoolingTower(
        SIZE, DIM, embeddings_initializer=keras.initializers.Constant(0.5), trainable=False
    )
    restored = AveragePoolingTower.from_config(tower.get_config())
    assert restored.get_config() == tower.get_config()
    assert (restored.vocabulary_size, restored.dim, restored.trainable) == (SIZE, DIM, False)
    np.testing.assert_allclose(restored(padded([[2]])), np.full([1, DIM], np.tanh(0.5)), rtol=1e-6)


def test_functional_model_on_padded_ids_survives_save_and_reload(tower, tmp_path):
    tokens = keras.Input([None], dtype="int32")
    model = keras.Model(tokens, tower(tokens))
    assert model.output_shape == (None, DIM)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    ids = padded([[2, 3], [], [4]])
    np.testing.assert_array_equal(reloaded.predict(ids, verbose=0), model.predict(ids, verbose=0))
    np.testing.assert_allclose(
        reloaded(ids), mean_by_hand(tower.embeddings.numpy(), [[2, 3], [], [4]]), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("arguments", "named"),
    [((0, 4), "vocabulary_size"), ((-3, 4), "vocabulary_size"), ((4, 0), "dim"), ((4, -1), "dim")],
)
def test_invalid_sizes_are_named(arguments, named):
    with pytest.raises(ValueError, match=rf"^{named} must be at least 1, but is (0|-\d)"):
        AveragePoolingTower(*arguments)


WEIGHTS = np.array([1, 9.5, 1e-3, 0.2, 1, 3, 25, 0.7])


def weighted(kind="learned"):
    tower = AveragePoolingTower(
        SIZE,
        DIM,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0, seed=1),
        token_weights=kind,
    )
    tower.build()
    return tower


def weighted_mean_by_hand(table, weights, texts):
    means = [
        np.average(table[text], axis=0, weights=weights[text]) if text else np.zeros(DIM)
        for text in texts
    ]
    return np.tanh(np.reshape(means, [len(texts), DIM]))


@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("form", [flat, with_texts, distinct, padded])
def test_weighted_mean_uses_the_weights_of_start_token_weights(form, texts):
    tower = weighted()
    tower.start_token_weights(WEIGHTS)
    expected = weighted_mean_by_hand(tower.embeddings.numpy(), WEIGHTS, texts)
    np.testing.assert_allclose(tower(form(texts)), expected, rtol=1e-5, atol=1e-6)


def test_weighted_mean_is_the_plain_mean_before_start_token_weights(tower):
    texts = [[2, 2, 3], [], [4, 5, 6]]
    np.testing.assert_allclose(weighted()(flat(texts)), tower(flat(texts)), rtol=1e-5, atol=1e-6)


def test_vanished_weights_leave_vector_and_gradient_finite():
    tower = weighted()
    tower.start_token_weights(np.full(SIZE, np.finfo(np.float32).tiny * 1e-30))
    with tf.GradientTape() as tape:
        vectors = tower(flat([[2, 3], []]))
    assert np.isfinite(vectors).all()
    for gradient in tape.gradient(vectors, tower.trainable_weights):
        assert np.isfinite(gradient.values).all()


def test_gradients_of_the_weighted_mean_are_sparse_name_each_row_once_and_equal_numpy():
    tower, texts = weighted(), [[2, 2, 3], [], [3, 5], [2]]
    tower.start_token_weights(WEIGHTS)
    upstream = np.arange(1, 1 + len(texts) * DIM, dtype="f4").reshape(-1, DIM)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(flat(texts)) * upstream)
    gradients = tape.gradient(loss, tower.trainable_weights)

    table = tower.embeddings.numpy().astype("f8")
    of_table, of_weights = np.zeros_like(table), np.zeros((SIZE, 1))
    for text, row in zip(texts, upstream):
        if not text:
            continue
        total, mean = WEIGHTS[text].sum(), np.average(table[text], axis=0, weights=WEIGHTS[text])
        above = row * (1 - np.tanh(mean) ** 2)
        for token in text:
            of_table[token] += above * WEIGHTS[token] / total
            # The slope of softplus is 1 - exp(-softplus); a tenth of the pace is the tower's.
            slope = 0.1 * (1 - np.exp(-WEIGHTS[token]))
            of_weights[token] += above @ (table[token] - mean) / total * slope
    for gradient, expected in zip(gradients, (of_table, of_weights)):
        assert isinstance(gradient, tf.IndexedSlices)
        assert sorted(gradient.indices.numpy()) == [2, 3, 5]
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), expected, rtol=1e-4, atol=1e-5)


def test_only_learned_token_weights_are_trained():
    assert len(weighted("learned").trainable_weights) == 2
    idf = weighted("idf")
    assert [weight.shape for weight in idf.trainable_weights] == [(SIZE, DIM)]
    assert [weight.shape for weight in idf.weights] == [(SIZE, DIM), (SIZE, 1)]


def test_weighted_tower_survives_save_and_reload(tmp_path):
    tower = weighted()
    tower.start_token_weights(WEIGHTS)
    model = keras.Sequential([tower])
    ids = padded([[2, 3], [], [4]])
    expected = model(ids)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(ids), expected)


def test_unknown_kind_of_weights_is_named():
    with pytest.raises(ValueError, match=r"^token_weights must be one of .*, but is 'tfidf'"):
        AveragePoolingTower(SIZE, DIM, token_weights="tfidf")
