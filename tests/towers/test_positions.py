"""Weights of positions: the average-pooling tower against weighted means taken by hand in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens
from tf_smoothclir.towers.average_pooling import AveragePoolingTower
from tf_smoothclir.towers.positions import NUM_PARTS, PART_BEGINS, by_part, part_of_position

SIZE, DIM = 30, 3
RANDOM = np.random.default_rng(4)
# The last part begins at 160, so the longest text goes far beyond it.
LENGTHS = {
    "short": [1, 2, 3],
    "empty first and last": [0, 5, 0],
    "all empty": [0, 0],
    "no text": [],
    "beyond the last part": [161, 0, 400, 9],
}
LOGS = np.linspace(1.0, -2.0, NUM_PARTS) + 0.3 * RANDOM.standard_normal(NUM_PARTS)


def texts_of(lengths):
    random = np.random.default_rng(len(lengths))
    return [random.integers(2, SIZE, length).tolist() for length in lengths]


def flat(texts):
    ids = [token for text in texts for token in text]
    return Tokens.of(tf.constant(ids, tf.int32), tf.constant(list(map(len, texts)), tf.int32))


def distinct(texts):
    return DistinctTokens.of(flat(texts))


def padded(texts):
    longest = max(map(len, texts), default=0) + 2
    rows = [[0, *text, *[0] * (longest - len(text))] for text in texts]
    return tf.constant(rows, tf.int32, [len(texts), longest + 1])


def tower_with(logs=LOGS, **options):
    tower = AveragePoolingTower(
        SIZE,
        DIM,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=1.0, seed=1),
        position_weights="learned",
        **options,
    )
    tower.build()
    tower.weights[-1].assign(logs)
    return tower


def part_by_hand(position):
    return max(part for part, begin in enumerate(PART_BEGINS) if begin <= position)


def weights_by_hand(text, logs=LOGS):
    return np.exp([logs[part_by_hand(position)] for position in range(len(text))])


def vectors_by_hand(tower, texts, weights_of=weights_by_hand):
    table = tower.embeddings.numpy().astype("f8")
    means = [
        np.average(table[text], axis=0, weights=weights_of(text)) if text else np.zeros(DIM)
        for text in texts
    ]
    return np.tanh(np.reshape(means, [len(texts), DIM]))


def test_parts_are_short_where_texts_begin_and_the_last_one_has_no_end():
    assert part_of_position(7).tolist() == [0, 1, 2, 2, 3, 3, 4]
    assert part_of_position(1000)[[159, 160, 999]].tolist() == [NUM_PARTS - 2, *[NUM_PARTS - 1] * 2]


def test_tokens_by_part_are_the_same_tokens_in_shorter_texts():
    parts = by_part(flat([[2, 3, 4, 5, 6], [], [7]]))
    assert parts.ids.numpy().tolist() == [2, 3, 4, 5, 6, 7]
    assert parts.texts.numpy().tolist() == [0, 1, 2, 2, 3, 2 * NUM_PARTS]
    expected = np.zeros([3, NUM_PARTS], int)
    expected[0, :4], expected[2, 0] = [1, 1, 2, 1], 1
    assert parts.lengths.numpy().tolist() == expected.ravel().tolist()


@pytest.mark.parametrize("lengths", LENGTHS.values(), ids=LENGTHS)
@pytest.mark.parametrize("form", [flat, distinct, padded])
def test_words_count_by_where_they_stand(form, lengths):
    tower, texts = tower_with(), texts_of(lengths)
    found = tower(form(texts))
    np.testing.assert_allclose(found, vectors_by_hand(tower, texts), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("token_weights", ["none", "learned"])
def test_before_training_all_positions_count_alike(token_weights):
    texts = texts_of(LENGTHS["beyond the last part"])
    tower = tower_with(np.zeros(NUM_PARTS), token_weights=token_weights)
    plain = vectors_by_hand(tower, texts, lambda text: np.ones(len(text)))
    np.testing.assert_allclose(tower(flat(texts)), plain, rtol=1e-5, atol=1e-6)


def test_weights_of_tokens_and_of_positions_are_multiplied():
    tower, texts = tower_with(token_weights="learned"), texts_of([3, 0, 170])
    of_tokens = RANDOM.uniform(0.1, 5.0, SIZE)
    tower.start_token_weights(of_tokens)
    expected = vectors_by_hand(tower, texts, lambda text: of_tokens[text] * weights_by_hand(text))
    np.testing.assert_allclose(tower(flat(texts)), expected, rtol=1e-5, atol=1e-6)


def test_words_made_of_ngrams_count_by_where_they_stand():
    tower, texts = tower_with(ngram_buckets=4), texts_of([4, 0, 40])
    words = distinct(texts)
    ngrams = [[word % 4, (word + 1) % 4] for word in words.distinct.numpy()]
    vectors = tower.embeddings.numpy() + np.array(
        [tower.ngram_embeddings.numpy()[[w % 4, (w + 1) % 4]].sum(0) / 2**0.5 for w in range(SIZE)]
    )
    expected = [
        np.tanh(np.average(vectors[text], axis=0, weights=weights_by_hand(text)))
        if text
        else np.zeros(DIM)
        for text in texts
    ]
    found = tower(SubwordTokens(*words, distinct(ngrams)))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_text_has_the_same_vector_alone_and_beside_longer_ones():
    tower, texts = tower_with(), texts_of([5, 300, 0, 20])
    together = tower(flat(texts)).numpy()
    for text, expected in zip(texts, together):
        np.testing.assert_allclose(tower(flat([text]))[0], expected, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("token_weights", ["none", "learned"])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
def test_gradients_equal_numpy(compiled, token_weights):
    tower, texts = tower_with(token_weights=token_weights), [[2, 2, 3], [], [3, 5, 4, 2, 2], [6]]
    upstream = np.arange(1, 1 + len(texts) * DIM, dtype="f4").reshape(-1, DIM)

    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tower(flat(texts), training=True) * upstream)
        sources = tf_variable(tower.embeddings), tf_variable(tower.weights[-1])
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, sources)]

    of_table, of_logs = (tf.function(gradients) if compiled else gradients)()

    table = tower.embeddings.numpy().astype("f8")
    expected_table, expected_logs = np.zeros_like(table), np.zeros(NUM_PARTS)
    for text, row in zip(texts, upstream):
        if not text:
            continue
        shares = weights_by_hand(text) / weights_by_hand(text).sum()
        mean = shares @ table[text]
        above = row * (1 - np.tanh(mean) ** 2)
        for position, (token, share) in enumerate(zip(text, shares)):
            expected_table[token] += share * above
            # d mean / d log weight = share * (vector - mean)
            expected_logs[part_by_hand(position)] += share * above @ (table[token] - mean)
    np.testing.assert_allclose(of_table, expected_table, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(of_logs, expected_logs, rtol=1e-4, atol=1e-5)


def test_the_gradient_of_the_table_is_sparse_and_names_each_row_once():
    tower = tower_with()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(flat([[2, 2, 3], [], [3, 5]])))
    gradient = tape.gradient(loss, tower.embeddings)
    assert isinstance(gradient, tf.IndexedSlices)
    assert sorted(gradient.indices.numpy()) == [2, 3, 5]


@pytest.mark.parametrize("extreme", [1e4, -1e4])
def test_extreme_profiles_have_finite_vectors_and_gradients(extreme):
    # exp(1e4) is infinite. With -1e4, the words of the first two texts count nothing at all.
    tower = tower_with([extreme, *[0.0] * (NUM_PARTS - 1)])
    with tf.GradientTape() as tape:
        vectors = tower(flat([[2], [], [3, 4]]))
    assert np.isfinite(vectors).all()
    only = 3 if extreme > 0 else 4
    np.testing.assert_allclose(vectors[2], np.tanh(tower.embeddings.numpy()[only]), rtol=1e-5)
    for gradient in tape.gradient(vectors, tower.trainable_weights):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


@pytest.mark.parametrize("token_weights", ["none", "learned"])
def test_the_mean_of_token_vectors_is_the_vector(token_weights):
    tower, texts = tower_with(token_weights=token_weights), texts_of([4, 0, 200])
    parts = np.split(tower.token_vectors(flat(texts)).numpy(), [4, 4])
    found = [np.tanh(part.mean(axis=0)) if len(part) else np.zeros(DIM) for part in parts]
    np.testing.assert_allclose(found, tower(flat(texts)), rtol=1e-5, atol=1e-6)


def test_the_profile_for_plots_has_the_largest_weight_one():
    found = tower_with().position_profile(200)
    expected = np.exp([LOGS[part_by_hand(position)] - LOGS.max() for position in range(200)])
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert AveragePoolingTower(SIZE, DIM).position_profile(200) is None


def test_without_position_weights_there_is_no_such_weight():
    tower = AveragePoolingTower(SIZE, DIM)
    tower.build()
    assert [weight.shape for weight in tower.weights] == [(SIZE, DIM)]


def test_tower_survives_save_and_reload(tmp_path):
    model = keras.Sequential([tower_with()])
    ids = padded(texts_of([4, 0, 170]))
    expected = model(ids)
    model.save(tmp_path / "model.keras")
    np.testing.assert_array_equal(keras.models.load_model(tmp_path / "model.keras")(ids), expected)


def test_unknown_kind_of_weights_is_named():
    with pytest.raises(ValueError, match=r"^position_weights must be one of .*, but is 'linear'"):
        AveragePoolingTower(SIZE, DIM, position_weights="linear")
