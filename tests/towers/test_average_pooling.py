"""The average-pooling tower, with all its weights, against means taken by hand in NumPy."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens
from tf_smoothclir.towers.average_pooling import (
    NUM_PARTS,
    PART_BEGINS,
    AveragePoolingTower,
    part_of_position,
)
from tf_smoothclir.towers.cnn import CNNTower
from tf_smoothclir.towers.lstm import LSTMTower

TEXTS = {
    "plain": [[2, 3], [4, 5, 6]],
    "repeated tokens": [[2, 2, 3], [3, 3, 3]],
    "empty first": [[], [2]],
    "empty in between": [[2, 3], [], [4]],
    "empty last": [[2, 3], [], []],
    "all empty": [[], [], []],
    "no text": [],
    "unknown": [[1, 2], [1]],
}
RANDOM = np.random.default_rng(4)
# The last part of positions begins at 160.
LONG = [RANDOM.integers(2, 8, length).tolist() for length in (161, 0, 400, 9)]
SIZE, DIM, BUCKETS = 8, 3, 11
# By word id: padding, unknown, three of a vocabulary of 5, those that only their spelling tells.
NGRAMS = [[], [], [0, 1, 2], [2, 2], [], [3, 4, 0], [9], [1]]
WEIGHTS = np.array([1, 9.5, 1e-3, 0.2, 1, 3, 25, 0.7])
LOGS = np.linspace(1.0, -2.0, NUM_PARTS) + 0.3 * RANDOM.standard_normal(NUM_PARTS)
BOTH = {"token_weights": "learned", "position_weights": "learned"}
BY_NGRAMS = {"vocabulary_size": 5, "ngram_buckets": BUCKETS}
KINDS = {
    "plain": {},
    "weights of tokens": {"token_weights": "learned"},
    "weights of positions": {"position_weights": "learned"},
    "both weights": BOTH,
    "n-grams": BY_NGRAMS,
    "n-grams and both weights": {**BOTH, **BY_NGRAMS},
}
every_kind = pytest.mark.parametrize("kind", KINDS)


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


def with_ngrams(texts):
    words = distinct(texts)
    return SubwordTokens(*words, distinct([NGRAMS[word] for word in words.distinct.numpy()]))


def padded(texts, length=None):
    length = length or max(map(len, texts), default=0) + 2
    return tf.constant(
        [text + [0] * (length - len(text)) for text in texts], tf.int32, [len(texts), length]
    )


def make(kind="plain", **options):
    table = keras.initializers.RandomNormal(stddev=1.0, seed=1)
    options = {"vocabulary_size": SIZE, "embeddings_initializer": table, **KINDS[kind], **options}
    tower = AveragePoolingTower(dim=DIM, **options)
    tower.build()
    if tower.token_weights != "none":
        tower.start_token_weights(WEIGHTS[: tower.vocabulary_size])
    if tower.position_weights != "none":
        tower.weights[-1].assign(LOGS)
    return tower


def word_vectors(tower):
    """By word id: its own vector (from 2 up to the size) plus its n-grams."""
    own = tower.embeddings.numpy().astype("f8")
    if not tower.ngram_buckets:
        return own
    vectors, ngrams = np.zeros([len(NGRAMS), DIM]), tower.ngram_embeddings.numpy()
    for word, buckets in enumerate(NGRAMS):
        if 2 <= word < tower.vocabulary_size:
            vectors[word] += own[word]
        if buckets:
            vectors[word] += ngrams[buckets].sum(axis=0) / np.sqrt(len(buckets))
    return vectors


def part_by_hand(position):
    return max(part for part, begin in enumerate(PART_BEGINS) if begin <= position)


def shares_by_hand(tower, text):
    """The weight of each token over the sum of them; words outside the table weigh as unknown."""
    weights = np.ones(len(text))
    if tower.token_weights != "none":
        weights *= WEIGHTS[[word if word < tower.vocabulary_size else 1 for word in text]]
    if tower.position_weights != "none":
        weights *= np.exp([LOGS[part_by_hand(position)] for position in range(len(text))])
    return weights / weights.sum()


def vectors_by_hand(tower, texts):
    vectors = word_vectors(tower)
    means = [shares_by_hand(tower, text) @ vectors[text] if text else [0] * DIM for text in texts]
    return np.tanh(np.reshape(means, [len(texts), DIM]))


def gradients_by_hand(tower, texts, upstream):
    """By what is trained; of the table, n-grams and weights of tokens also those of other rows."""
    vectors, size = word_vectors(tower), tower.vocabulary_size
    words, ngrams = np.zeros_like(vectors), np.zeros([BUCKETS, DIM])
    tokens, logs = np.zeros([size, 1]), np.zeros(NUM_PARTS)
    for text, row in zip(texts, upstream):
        shares = shares_by_hand(tower, text)
        mean = shares @ vectors[text] if text else 0
        above = row * (1 - np.tanh(mean) ** 2)
        for position, (word, share) in enumerate(zip(text, shares)):
            words[word] += share * above
            # d mean / d log weight = share * (vector - mean)
            by_log = share * above @ (vectors[word] - mean)
            logs[part_by_hand(position)] += by_log
            if word < size:  # the slope of softplus is 1 - exp(-softplus); a tenth is the tower's
                tokens[word] += by_log * 0.1 * (1 - np.exp(-WEIGHTS[word])) / WEIGHTS[word]
    for word, buckets in enumerate(NGRAMS if tower.ngram_buckets else []):
        np.add.at(ngrams, buckets, words[word] / np.sqrt(max(1, len(buckets))))
    if tower.ngram_buckets:
        words[:2] = 0
    of_weights = {"token_weights": tokens, "position_weights": logs}
    trained = [gradient for name, gradient in of_weights.items() if getattr(tower, name) != "none"]
    return [words[:size], *([ngrams] if tower.ngram_buckets else []), *trained]


@every_kind
@pytest.mark.parametrize("texts", [*TEXTS.values(), LONG], ids=[*TEXTS, "long"])
@pytest.mark.parametrize("form", [flat, with_texts, distinct, padded])
def test_weighted_mean_over_real_tokens_only_then_tanh(kind, form, texts):
    tower = make(kind)
    vectors = tower((with_ngrams if tower.ngram_buckets else form)(texts))
    assert vectors.dtype == tf.float32
    if kind == "plain" and texts:
        ragged = tf.ragged.constant(texts, ragged_rank=1, dtype=tf.int32)
        np.testing.assert_array_equal(tower.call(ragged), tower(flat(texts)))
    np.testing.assert_allclose(vectors, vectors_by_hand(tower, texts), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["plain", "both weights"])
def test_padding_never_enters_the_mean(kind):
    tower = make(kind)
    between = tower(tf.constant([[0, 2, 0, 3, 0]]))
    np.testing.assert_allclose(between, tower(flat([[2, 3]])), rtol=1e-6)
    # Not even its row of the table counts, not even if that is NaN.
    tf_variable(tower.embeddings).scatter_nd_update([[0]], [[np.nan] * DIM])
    np.testing.assert_array_equal(tower(tf.constant([[0, 2, 0, 3, 0]])), between)


@every_kind
@pytest.mark.parametrize("texts", [[[2, 2, 3], [], [3, 5, 4, 2, 2], [6, 1]], [[], []]])
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "graph"])
def test_gradients_name_each_row_once_and_equal_numpy(kind, compiled, texts):
    tower = make(kind)
    form = with_ngrams if tower.ngram_buckets else flat
    tokens, upstream = form(texts), np.arange(1.0, 1 + len(texts) * DIM, dtype="f4")
    upstream = upstream.reshape(-1, DIM)

    def gradients():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tower(tokens, training=compiled) * upstream)
        return tape.gradient(loss, list(map(tf_variable, tower.trainable_weights)))

    found = (tf.function(gradients) if compiled else gradients)()
    expected = gradients_by_hand(tower, texts, upstream)
    for gradient, by_hand in zip(found, expected, strict=True):
        if by_hand.shape != (NUM_PARTS,):
            assert isinstance(gradient, tf.IndexedSlices)
            rows = gradient.indices.numpy().tolist()
            assert len(set(rows)) == len(rows)
            assert set(np.flatnonzero(by_hand.any(axis=1))) <= set(rows)
            if not compiled:
                assert len(rows) < len(by_hand)
        np.testing.assert_allclose(tf.convert_to_tensor(gradient), by_hand, rtol=1e-4, atol=1e-5)


@every_kind
def test_the_mean_of_token_vectors_is_the_vector(kind):
    tower, texts = make(kind), [[2, 3, 3, 6], [], LONG[0]]
    tokens = (with_ngrams if tower.ngram_buckets else flat)(texts)
    parts = np.split(tower.token_vectors(tokens).numpy(), [4, 4])
    found = [np.tanh(part.mean(axis=0)) if len(part) else np.zeros(DIM) for part in parts]
    np.testing.assert_allclose(found, tower(tokens), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("extreme", ["token", 1e4, -1e4])
def test_extreme_weights_have_finite_vectors_and_gradients(extreme):
    # exp(1e4) is infinite. With -1e4, the words of the first two texts count nothing at all.
    tower = make("weights of tokens" if extreme == "token" else "weights of positions")
    if extreme == "token":
        tower.start_token_weights(np.full(SIZE, float(np.finfo(np.float32).tiny) * 1e-30))
    else:
        tower.weights[-1].assign([extreme, *[0.0] * (NUM_PARTS - 1)])
    with tf.GradientTape() as tape:
        vectors = tower(flat([[2], [], [3, 4]]))
    assert np.isfinite(vectors).all()
    if extreme != "token":
        only = tower.embeddings.numpy()[3 if extreme > 0 else 4]
        np.testing.assert_allclose(vectors[2], np.tanh(only), rtol=1e-5)
    for gradient in tape.gradient(vectors, tower.trainable_weights):
        assert np.isfinite(tf.convert_to_tensor(gradient)).all()


def test_parts_of_positions_are_short_where_texts_begin_and_the_last_one_has_no_end():
    assert part_of_position(7).tolist() == [0, 1, 2, 2, 3, 3, 4]
    assert part_of_position(1000)[[159, 160, 999]].tolist() == [NUM_PARTS - 2, *[NUM_PARTS - 1] * 2]


def test_weights_are_those_that_were_asked_for_and_only_learned_ones_are_trained():
    trainable = {
        "plain": [(SIZE, DIM)],
        "both weights": [(SIZE, DIM), (SIZE, 1), (NUM_PARTS,)],
        "n-grams": [(5, DIM), (BUCKETS, DIM)],
    }
    for kind, shapes in trainable.items():
        tower = make(kind)
        assert [weight.shape for weight in tower.trainable_weights] == shapes
        assert len(tower.weights) == len(shapes)
    idf = make(token_weights="idf")
    assert [weight.shape for weight in idf.trainable_weights] == [(SIZE, DIM)]
    assert [weight.shape for weight in idf.weights] == [(SIZE, DIM), (SIZE, 1)]
    fresh = AveragePoolingTower(20_000, DIM, **BOTH)
    fresh.build()
    assert not any(np.any(weight) for weight in fresh.weights[1:])  # at first, all count alike
    # With epsilon = 1, short vectors would have small scores; the authors draw from N(0, 1).
    assert np.std(fresh.embeddings) == pytest.approx(1, abs=0.02)
    assert make("n-grams", train_embeddings=False).trainable_weights == []
    assert make("n-grams", trainable=False).trainable_weights == []


def test_config_round_trip_keeps_every_argument():
    constants = [keras.initializers.Constant(value) for value in (0.5, 0.25)]
    starts = dict(zip(("embeddings_initializer", "ngram_initializer"), constants))
    tower = make("n-grams and both weights", trainable=False, **starts)
    restored = AveragePoolingTower.from_config(tower.get_config())
    assert restored.get_config() == tower.get_config()
    restored.build()
    np.testing.assert_array_equal(restored.ngram_embeddings, np.full([BUCKETS, DIM], 0.25))


def test_functional_model_on_padded_ids_survives_save_and_reload(tmp_path):
    tower, tokens = make("both weights"), keras.Input([None], dtype="int32")
    model = keras.Model(tokens, tower(tokens))
    assert model.output_shape == (None, DIM)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    texts = [[2, 3], [], [4]]
    np.testing.assert_array_equal(reloaded(padded(texts)), model(padded(texts)))
    np.testing.assert_allclose(reloaded(padded(texts)), vectors_by_hand(tower, texts), rtol=1e-5)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("vocabulary_size", -3, "must be at least 1, but is -3"),
        ("dim", 0, "must be at least 1, but is 0"),
        ("ngram_buckets", -1, "must be at least 0, but is -1"),
        ("token_weights", "tfidf", "must be one of .*, but is 'tfidf'"),
        ("position_weights", "linear", "must be one of .*, but is 'linear'"),
        ("dropout", 1.0, "must be at least 0 and below 1, but is 1.0"),
        ("dropout", -0.1, "must be at least 0 and below 1, but is -0.1"),
    ],
)
def test_invalid_arguments_are_named(name, value, message):
    for kind in (CNNTower, LSTMTower) if name == "dropout" else (AveragePoolingTower,):
        with pytest.raises(ValueError, match=f"^{name} {message}"):
            kind(**{"vocabulary_size": SIZE, "dim": DIM, name: value})
