"""Average pooling, CNN and LSTM as in NumPy: forms of texts, gradients, dropout, weights."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.cases import cases
from tests.graphs import operations_in
from tests.oracles import maths
from tf_smoothclir import LazyAdam, LSTMTower, SmoothOrdinalSearchLoss, TwoTower
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.plugins import TOWERS
from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens
from tf_smoothclir.towers import average_pooling, cnn
from tf_smoothclir.towers.average_pooling import NUM_PARTS, AveragePoolingTower
from tf_smoothclir.towers.sequence_tower import dropped_out

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
TABLE = keras.initializers.RandomNormal(stddev=1.0, seed=1)
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
every_kind = cases("kind", *KINDS)
READER_SIZE = 12
BATCH = [[2, 2, 3], [], [3, 5, 7, 9, 2], [11]]

every_reader = cases("kind", cnn.CNNTower, LSTMTower)
WORDS = [[2, 3, 2], [], [5, 6, 4], [1]]


def flat(texts):
    ids, lengths = [token for text in texts for token in text], [*map(len, texts)]
    return {"ids": tf.constant(ids, tf.int32), "lengths": tf.constant(lengths, tf.int32)}


def with_texts(texts):
    return Tokens.of(**flat(texts))


def distinct(texts):
    return DistinctTokens.of(with_texts(texts))


def with_ngrams(texts):
    words = distinct(texts)
    return SubwordTokens(*words, distinct([NGRAMS[word] for word in words.distinct.numpy()]))


def padded(texts, length=None):
    length = length or max(map(len, texts), default=0) + 2
    rows = [text + [0] * (length - len(text)) for text in texts]
    return tf.constant(rows, tf.int32, [len(texts), length])


def make(kind="plain", **options):
    options = {"vocabulary_size": SIZE, "embeddings_initializer": TABLE, **KINDS[kind], **options}
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
    return max(part for part, begin in enumerate(average_pooling.PART_BEGINS) if begin <= position)


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
@cases("texts", *TEXTS.values(), LONG, ids=[*TEXTS, "long"])
@cases("form", flat, with_texts, distinct, padded)
def test_weighted_mean_over_real_tokens_only_then_tanh(kind, form, texts):
    tower = make(kind)
    vectors = tower((with_ngrams if tower.ngram_buckets else form)(texts))
    assert vectors.dtype == tf.float32
    if kind == "plain" and texts:
        ragged = tf.ragged.constant(texts, ragged_rank=1, dtype=tf.int32)
        np.testing.assert_array_equal(tower.call(ragged), tower(flat(texts)))
    np.testing.assert_allclose(vectors, vectors_by_hand(tower, texts), rtol=1e-5, atol=1e-6)


@cases("kind", "plain", "both weights")
def test_padding_never_enters_the_mean(kind):
    tower = make(kind)
    between = tower(tf.constant([[0, 2, 0, 3, 0]]))
    np.testing.assert_allclose(between, tower(flat([[2, 3]])), rtol=1e-6)
    # Not even its row of the table counts, not even if that is NaN.
    tf_variable(tower.embeddings).scatter_nd_update([[0]], [[np.nan] * DIM])
    np.testing.assert_array_equal(tower(tf.constant([[0, 2, 0, 3, 0]])), between)


@every_kind
@cases("texts", [[2, 2, 3], [], [3, 5, 4, 2, 2], [6, 1]], [[], []])
@cases("compiled", False, True, ids=["eager", "graph"])
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
    for gradient, by_hand in zip(found, gradients_by_hand(tower, texts, upstream), strict=True):
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


@cases("extreme", "token", 1e4, -1e4)
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
    assert average_pooling.part_of_position(7).tolist() == [0, 1, 2, 2, 3, 3, 4]
    found = average_pooling.part_of_position(1000)[[159, 160, 999]].tolist()
    assert found == [NUM_PARTS - 2, NUM_PARTS - 1, NUM_PARTS - 1]


def test_weights_are_those_that_were_asked_for_and_only_learned_ones_are_trained():
    trainable = {"plain": [(SIZE, DIM)], "n-grams": [(5, DIM), (BUCKETS, DIM)]}
    trainable["both weights"] = [(SIZE, DIM), (SIZE, 1), (NUM_PARTS,)]
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


@cases(
    "name, value, message",
    ("vocabulary_size", -3, "must be at least 1, but is -3"),
    ("dim", 0, "must be at least 1, but is 0"),
    ("ngram_buckets", -1, "must be at least 0, but is -1"),
    ("token_weights", "tfidf", "must be one of .*, but is 'tfidf'"),
    ("position_weights", "linear", "must be one of .*, but is 'linear'"),
    ("dropout", 1.0, "must be at least 0 and below 1, but is 1.0"),
    ("dropout", -0.1, "must be at least 0 and below 1, but is -0.1"),
)
def test_invalid_arguments_are_named(name, value, message):
    for kind in (cnn.CNNTower, LSTMTower) if name == "dropout" else (AveragePoolingTower,):
        with pytest.raises(ValueError, match=f"^{name} {message}"):
            kind(**{"vocabulary_size": SIZE, "dim": DIM, name: value})


def make_reader(kind, **kwargs):
    tower = kind(READER_SIZE, DIM, embeddings_initializer=TABLE, **kwargs)
    tower.build()
    return tower


def random_reader(kind, **options):
    tower = make_reader(kind, seed=2, **options)
    for number, weight in enumerate(tower.trainable_weights):  # zeros would hide mixed-up weights
        weight.assign(np.random.default_rng(number).normal(0, 0.4, weight.shape))
    return tower


def read_by_hand(tower, texts):
    table, *rest = (weight.numpy() for weight in tower.trainable_weights)
    if isinstance(tower, cnn.CNNTower):
        of_text = maths.cnn
    else:
        kernel, bias, *recurrent = rest
        of_text, rest = maths.bidirectional_lstm, (recurrent[:3], recurrent[3:], kernel, bias)
    vectors = [of_text(table[text], *rest, tower.as_published) for text in texts]
    return np.reshape(vectors, [-1, DIM])


@every_reader
@cases("as_published", False, True)
@cases("texts", *TEXTS.values(), BATCH, ids=[*TEXTS, "batch"])
def test_equals_the_oracle_in_every_form(kind, texts, as_published):
    tower = random_reader(kind, as_published=as_published)
    vectors = tower(flat(texts))
    assert vectors.dtype == tf.float32
    np.testing.assert_allclose(vectors, read_by_hand(tower, texts), rtol=1e-4, atol=1e-5)
    for form in (distinct, padded):
        np.testing.assert_array_equal(tower(form(texts)), vectors)
    tokens = dict.fromkeys(("ids", "lengths"), tf.TensorSpec([None], tf.int32))
    served = tf.function(lambda tokens: tower(tokens), input_signature=[tokens])
    np.testing.assert_allclose(served(flat(texts)), vectors, rtol=1e-5, atol=1e-6)


@every_reader
def test_wider_padding_and_its_row_of_the_table_change_nothing(kind):
    tower = make_reader(kind)
    narrow = tower(padded(BATCH, 5)).numpy()
    tf_variable(tower.embeddings).scatter_nd_update([[0]], [[np.nan] * DIM])
    np.testing.assert_allclose(tower(padded(BATCH, 40)), narrow, rtol=1e-5, atol=1e-6)


@every_reader
@cases("training", False, True)
def test_empty_text_is_the_zero_vector_and_moves_nothing(kind, training):
    tower = make_reader(kind)
    with tf.GradientTape() as tape:
        vectors = tower(flat([[], []]), training=training)
        loss = tf.reduce_sum(vectors + vectors**2)
    np.testing.assert_array_equal(vectors, np.zeros([2, DIM]))
    for gradient in tape.gradient(loss, tower.trainable_weights):
        np.testing.assert_array_equal(tf.convert_to_tensor(gradient), tf.zeros(gradient.shape))


@every_reader
@cases("form", flat, distinct)
@cases("training", False, True)
def test_gradient_of_the_table_is_sparse_and_names_each_row_once(kind, form, training):
    tower = make_reader(kind)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tower(form(BATCH), training=training) ** 2)
    table, *others = tape.gradient(loss, tower.trainable_weights)
    assert isinstance(table, tf.IndexedSlices)
    assert sorted(table.indices.numpy()) == [2, 3, 5, 7, 9, 11]
    assert np.isfinite(table.values).all()
    assert all(np.isfinite(gradient).all() and np.any(gradient) for gradient in others)


@every_reader
@cases("seed", *range(3))
def test_gradients_are_those_of_finite_differences(kind, seed):
    # TensorFlow's own gradient of BlockLSTMV2 fails here: it takes the gates in another order.
    tower, random = random_reader(kind), np.random.default_rng(seed)
    upstream = random.normal(size=[len(BATCH), DIM]).astype("f4")

    def loss():
        return tf.reduce_sum(tower(flat(BATCH)) * upstream)

    with tf.GradientTape() as tape:
        value = loss()
    gradients = tape.gradient(value, tower.trainable_weights)
    for weight, gradient in zip(tower.trainable_weights, gradients, strict=True):
        before, direction = weight.numpy(), random.normal(size=weight.shape).astype("f4")
        ends = []
        for step in (2e-3, -2e-3):
            weight.assign(before + step * direction)
            ends.append(float(loss()))
        weight.assign(before)
        expected = np.sum(tf.convert_to_tensor(gradient).numpy() * direction)
        slope = (ends[0] - ends[1]) / 4e-3
        assert slope == pytest.approx(expected, abs=2e-3, rel=1e-2), weight.name


@cases("rate", 1e-9, 0.5, 1 - 1e-9)
@cases("tokens", 0, 1, 333)
def test_any_share_of_any_number_of_entries_may_be_dropped(rate, tokens):
    # Two entries share 32 random bits: 333 * 3 is odd. A share near 1 is no int16.
    kept = dropped_out(tf.ones([tokens, DIM]), rate, tf.constant([1, 2], tf.int64)).numpy()
    assert kept.shape == (tokens, DIM)
    assert np.isfinite(kept).all()
    if tokens == 333:
        assert np.mean(kept == 0) == pytest.approx(rate, abs=0.05)
        assert kept[kept > 0] == pytest.approx(1 / (1 - rate), rel=1e-3)


@every_reader
def test_seed_decides_initial_weights_and_dropout(kind):
    first, same, other = (make_reader(kind, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_equal(first.get_weights(), same.get_weights())
    assert any(np.any(a != b) for a, b in zip(first.get_weights(), other.get_weights()))
    other.set_weights(first.get_weights())
    assert np.any(first(flat(BATCH), training=True) != other(flat(BATCH), training=True))


def two_tower(kind, **options):
    model = TwoTower(make_reader(kind, **options), make_reader(kind, seed=5))
    model.build()
    return model


def pairs():
    texts = [[2, 3], [4, 5, 6], [7], [8, 9, 10, 11]]
    inputs = {"query": padded(texts), "document": padded([text[::-1] for text in texts])}
    return inputs, tf.constant([2, 0, 1, 0])


@every_reader
def test_dropout_only_in_training(kind):
    tower = make_reader(kind)
    vectors = tower(flat(BATCH))
    np.testing.assert_array_equal(tower(flat(BATCH), training=False), vectors)
    dropped = tower(flat(BATCH), training=True)
    assert np.abs(dropped - vectors).max() > 0.01
    assert np.abs(tower(flat(BATCH), training=True) - dropped).max() > 0.01
    without = make_reader(kind, dropout=0.0)
    np.testing.assert_array_equal(without(flat(BATCH), training=True), without(flat(BATCH)))
    model = two_tower(kind)
    model.compile(LazyAdam(0.05), SmoothOrdinalSearchLoss())
    model.train_step(pairs())
    assert int(model.query_tower._dropouts) == 1  # a step reaches the towers as training


@every_reader
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


@cases("texts", [0, 0, 0, 1, 1], [0, 2, 2], [0, 0, -1, -1, 2, 2, -1], [-1], [])
def test_gradients_of_the_largest_responses_are_those_of_tensorflow(texts):
    random = np.random.default_rng(3)
    stream = random.integers(-1, 2, [len(texts) + 1, 2]).astype("f4")  # small numbers: with ties
    filters = random.integers(-1, 2, [4, 7]).astype("f4")

    def of_tensorflow(stream, texts, filters, batch):
        windows = tf.concat([stream[:-1], stream[1:]], axis=1)
        return tf.math.unsorted_segment_max(tf.matmul(windows, filters), texts, batch)

    found = []
    for largest in (cnn.largest_responses, of_tensorflow):
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
    tower = cnn.CNNTower(1000, 64, seed=1)
    tower.build()
    words = np.random.default_rng(1).integers(2, 1000, 8 * 30)
    features = tower.read(tf.gather(tower.embeddings, words), tf.fill([8], 30))
    assert np.mean(1 - np.square(features)) > 0.2


def test_directions_begin_with_different_weights_and_an_open_forget_gate():
    tower = make_reader(LSTMTower, seed=2)
    recurrent = [weight.numpy() for weight in tower.trainable_weights[3:]]
    forward, backward = recurrent[:3], recurrent[3:]
    assert np.abs(forward[0] - backward[0]).max() > 0.01
    assert np.abs(forward[1] - backward[1]).max() > 0.01
    for _, _, bias in (forward, backward):
        np.testing.assert_array_equal(bias, np.repeat([0, 1, 0, 0], 64))


@cases("texts", [[2, 3, 4]], [[]], [[2], [3, 4], [5, 6, 7]])
@cases("as_published", False, True)
def test_gradients_of_texts_add_up_in_any_batch(texts, as_published):
    # A half of the batch without a text had the gradient of whatever was in the memory.
    tower = random_reader(LSTMTower, as_published=as_published)

    def gradients(batch):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tower(flat(batch)) ** 2)
        return [tf.convert_to_tensor(g) for g in tape.gradient(loss, tower.trainable_weights)]

    alone = gradients(texts)
    together, between = gradients([*texts, [7, 6], *texts]), gradients([[7, 6], []])
    for one, all_of_them, other in zip(alone, together, between, strict=True):
        np.testing.assert_allclose(all_of_them, 2 * one + other, rtol=1e-4, atol=1e-6)


def test_graph_has_the_fused_kernel_and_no_loop():
    tower = random_reader(LSTMTower)
    tokens = {"ids": tf.TensorSpec([None], tf.int32), "lengths": tf.TensorSpec([None], tf.int32)}
    operations = operations_in(tf.function(tower.__call__).get_concrete_function(tokens).graph)
    assert "BlockLSTM" in operations
    assert not operations & {"While", "StatelessWhile"}


@cases("kind", *TOWERS.values(), ids=TOWERS)
def test_every_reader_has_word_vectors_with_ngrams_and_ids_without_them_are_an_error(kind):
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
