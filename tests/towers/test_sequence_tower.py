"""What `SequenceTower` promises of every tower that reads word order."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.graphs import operations_in
from tests.towers.test_average_pooling import TEXTS, distinct, flat, padded
from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.optimizers import LazyAdam
from tf_smoothclir.towers.cnn import CNNTower
from tf_smoothclir.towers.lstm import LSTMTower
from tf_smoothclir.towers.sequence_tower import dropped_out, places
from tf_smoothclir.two_tower.model import TwoTower

SIZE, DIM = 12, 3
BATCH = [[2, 2, 3], [], [3, 5, 7, 9, 2], [11]]

every_tower = pytest.mark.parametrize("kind", [CNNTower, LSTMTower])
every_form = pytest.mark.parametrize("form", [flat, distinct, padded])


def make(kind, **kwargs):
    table = keras.initializers.RandomNormal(stddev=1.0, seed=1)
    tower = kind(SIZE, DIM, embeddings_initializer=table, **kwargs)
    tower.build()
    return tower


# ---- padding and batches ------------------------------------------------------------------------


def test_places_in_a_batch_with_empty_texts():
    texts, place = places(tf.constant([2, 0, 1]))
    assert (texts.numpy().tolist(), place.numpy().tolist()) == ([0, 0, 2], [0, 1, 0])


@every_tower
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
def test_flat_and_padded_forms_agree_bitwise(kind, texts):
    tower = make(kind)
    np.testing.assert_array_equal(tower(flat(texts)), tower(padded(texts)))


@every_tower
@every_form
def test_a_text_has_the_same_vector_alone_and_beside_any_other(kind, form):
    tower = make(kind)
    vectors = tower(form(BATCH)).numpy()
    for text, vector in zip(BATCH, vectors):
        np.testing.assert_allclose(tower(form([text]))[0], vector, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(tower(form(BATCH[::-1])), vectors[::-1], rtol=1e-5, atol=1e-6)


@every_tower
def test_wider_padding_and_its_row_of_the_table_change_nothing(kind):
    tower = make(kind)
    narrow = tower(padded(BATCH, 5)).numpy()
    tf_variable(tower.embeddings).scatter_nd_update([[0]], [[np.nan] * DIM])
    np.testing.assert_allclose(tower(padded(BATCH, 40)), narrow, rtol=1e-5, atol=1e-6)


@every_tower
@pytest.mark.parametrize("as_published", [False, True])
def test_every_token_and_its_place_count(kind, as_published):
    # Average pooling would not see the order.
    tower = make(kind, as_published=as_published)
    vectors = tower(flat([[2, 3, 4], [5, 3, 4], [2, 5, 4], [2, 3, 5], [4, 3, 2]])).numpy()
    distances = np.abs(vectors[:, None] - vectors).max(-1)[~np.eye(5, dtype=bool)]
    assert distances.min() > 1e-4


@every_tower
@every_form
@pytest.mark.parametrize("training", [False, True])
def test_empty_text_is_the_zero_vector_and_moves_nothing(kind, form, training):
    tower = make(kind)
    with tf.GradientTape() as tape:
        vectors = tower(form([[], []]), training=training)
        loss = tf.reduce_sum(vectors + vectors**2)
    np.testing.assert_array_equal(vectors, np.zeros([2, DIM]))
    for gradient in tape.gradient(loss, tower.trainable_weights):
        np.testing.assert_array_equal(tf.convert_to_tensor(gradient), tf.zeros(gradient.shape))


@every_tower
def test_batch_without_a_text_has_no_vector(kind):
    assert make(kind)(flat([])).shape == (0, DIM)


# ---- gradients ----------------------------------------------------------------------------------


@every_tower
@every_form
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
def test_gradient_of_the_table_equals_finite_differences(kind):
    tower = make(kind)
    upstream = np.random.default_rng(0).normal(size=[len(BATCH), DIM]).astype("f4")

    def loss():
        return tf.reduce_sum(tower(flat(BATCH)) * upstream)

    with tf.GradientTape() as tape:
        value = loss()
    found = tf.convert_to_tensor(tape.gradient(value, tower.embeddings)).numpy()
    for row, column in [(2, 0), (3, 1), (7, 2), (11, 0), (4, 0)]:
        ends = []
        for step in (2e-3, -2e-3):
            tf_variable(tower.embeddings).scatter_nd_add([[row, column]], [step])
            ends.append(float(loss()))
            tf_variable(tower.embeddings).scatter_nd_add([[row, column]], [-step])
        assert found[row, column] == pytest.approx((ends[0] - ends[1]) / 4e-3, abs=2e-3)
    assert np.abs(found[[2, 3, 7, 11]]).max() > 0.01


@every_tower
def test_one_lazy_step_changes_the_rows_that_occur_and_every_other_weight(kind):
    tower = make(kind)
    before = [weight.numpy() for weight in tower.trainable_weights]
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum((tower(flat(BATCH)) - 1) ** 2)
    gradients = tape.gradient(loss, tower.trainable_weights)
    LazyAdam(0.01).apply_gradients(zip(gradients, tower.trainable_weights))
    rows = np.flatnonzero((tower.embeddings.numpy() != before[0]).any(axis=1))
    assert rows.tolist() == [2, 3, 5, 7, 9, 11]
    assert all(np.any(now.numpy() != old) for now, old in zip(tower.trainable_weights, before))


@every_tower
def test_frozen_table_leaves_the_rest_to_train(kind):
    tower = make(kind, train_embeddings=False)
    names = {weight.name for weight in tower.trainable_weights}
    assert names
    assert tower.embeddings.name not in names
    assert make(kind, trainable=False).trainable_weights == []


# ---- dropout ------------------------------------------------------------------------------------


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


def test_two_fifths_of_the_entries_are_dropped_and_the_rest_grow():
    class Recorder(CNNTower):
        def read(self, vectors, lengths):
            self.seen = vectors.numpy()
            return super().read(vectors, lengths)

    tower = Recorder(2, 64, embeddings_initializer="ones")
    tower(flat([[1] * 2000]), training=True)
    assert np.unique(tower.seen).tolist() == pytest.approx([0, 1 / (1 - 0.4)])
    assert np.mean(tower.seen == 0) == pytest.approx(0.4, abs=0.01)


@pytest.mark.parametrize("rate", [1e-9, 0.5, 1 - 1e-9])
@pytest.mark.parametrize("tokens", [0, 1, 333])
def test_any_share_of_any_number_of_entries_may_be_dropped(rate, tokens):
    # Two entries share 32 random bits: 333 * 3 is odd. A share near 1 is no int16.
    kept = dropped_out(tf.ones([tokens, DIM]), rate, tf.constant([1, 2], tf.int64)).numpy()
    assert kept.shape == (tokens, DIM)
    assert np.isfinite(kept).all()
    if tokens == 333:
        assert np.mean(kept == 0) == pytest.approx(rate, abs=0.05)


@every_tower
def test_dropout_continues_exactly_from_saved_weights(kind):
    tower, other = make(kind), make(kind)
    tower(flat(BATCH), training=True)
    other.set_weights(tower.get_weights())
    expected = [tower(flat(BATCH), training=True).numpy() for _ in range(3)]
    found = [other(flat(BATCH), training=True).numpy() for _ in range(3)]
    np.testing.assert_array_equal(found, expected)


@every_tower
def test_seed_decides_initial_weights_and_dropout(kind):
    first, same, other = (make(kind, seed=seed) for seed in (3, 3, 4))
    for ours, theirs in zip(first.get_weights(), same.get_weights()):
        np.testing.assert_array_equal(ours, theirs)
    assert any(np.any(a != b) for a, b in zip(first.get_weights(), other.get_weights()))
    other.set_weights(first.get_weights())
    ours, theirs = (tower(flat(BATCH), training=True) for tower in (first, other))
    assert np.any(ours != theirs)


# ---- inside Keras, and out of it -----------------------------------------------------------------


def two_tower(kind):
    model = TwoTower(make(kind), make(kind, seed=5))
    model.build()
    return model


def pairs():
    texts = [[2, 3], [4, 5, 6], [7], [8, 9, 10, 11]]
    inputs = {"query": padded(texts), "document": padded([text[::-1] for text in texts])}
    return inputs, np.array([2, 0, 1, 0])


def lists():
    query, document = flat([[2, 3], [4, 5, 6]]), flat([[7], [8, 9], [], [10, 11, 2], [3]])
    inputs = {"query": query, "document": document, "list_lengths": tf.constant([3, 2])}
    return inputs, tf.constant([2, 0, 1, 0, 2])


@pytest.mark.slow
@every_tower
def test_fit_lowers_the_loss_of_pairs(kind):
    model = two_tower(kind)
    model.compile(LazyAdam(0.05), SmoothOrdinalSearchLoss())
    inputs, grades = pairs()
    before = model.evaluate(inputs, grades, verbose=0)
    # In order: who stands where decides what is dropped.
    model.fit(inputs, grades, batch_size=4, epochs=40, shuffle=False, verbose=0)
    assert model.evaluate(inputs, grades, verbose=0) < 0.5 * before
    assert int(model.query_tower._dropouts) == 40  # `fit` reaches the towers as training


@pytest.mark.slow
@every_tower
def test_steps_in_a_loop_of_the_graph_lower_the_loss_of_lists(kind):
    model = two_tower(kind)
    model.compile(LazyAdam(0.05), SmoothOrdinalSearchLoss())
    model.optimizer.build(model.trainable_variables)
    batches = iter(tf.data.Dataset.from_tensors(lists()).repeat())

    @tf.function
    def steps(batches, number):
        losses = tf.TensorArray(tf.float32, number)
        for step in tf.range(number):
            losses = losses.write(step, model.train_step(next(batches))["batch_loss"])
        return losses.stack()

    losses = steps(batches, tf.constant(20)).numpy()
    assert losses[-5:].mean() < 0.6 * losses[:2].mean()


@every_tower
def test_config_round_trip_keeps_every_argument(kind):
    tower = kind(
        SIZE,
        DIM,
        embeddings_initializer=keras.initializers.Constant(0.5),
        train_embeddings=False,
        dropout=0.1,
        as_published=True,
        seed=9,
    )
    restored = kind.from_config(tower.get_config())
    assert restored.get_config() == tower.get_config()
    assert (restored.train_embeddings, restored.dropout, restored.seed) == (False, 0.1, 9)
    assert restored.as_published


@every_tower
def test_two_tower_survives_save_and_reload(kind, tmp_path):
    model = two_tower(kind)
    inputs, _ = pairs()
    scores = model(inputs)
    model(inputs, training=True)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(reloaded(inputs), scores)
    np.testing.assert_array_equal(reloaded(inputs, training=True), model(inputs, training=True))


@every_tower
@pytest.mark.parametrize("form", [flat, padded])
def test_one_graph_serves_every_shape(kind, form):
    tower = make(kind)
    rank = 1 if form is flat else 2
    spec = tf.nest.map_structure(
        lambda tokens: tf.TensorSpec([None] * rank, tokens.dtype), form([[2]])
    )
    encode = tf.function(lambda tokens: tower(tokens), input_signature=[spec])
    for texts in ([[2]], BATCH, [[]], [], [[7, 8]] * 5):
        np.testing.assert_allclose(encode(form(texts)), tower(form(texts)), rtol=1e-5, atol=1e-6)
    assert encode.experimental_get_tracing_count() == 1


@every_tower
def test_saved_model_gives_the_same_vectors_with_core_ops_only(kind, tmp_path):
    tower = make(kind)
    module = tf.Module()
    module.weights = list(tower.weights)  # and nothing of Keras, as in `ExportedTower`
    flat_ids = tf.TensorSpec([None], tf.int32)

    @tf.function(input_signature=[flat_ids, flat_ids])
    def serve(ids, lengths):
        return {"vector": tower({"ids": ids, "lengths": lengths})}

    module.serve = serve
    tf.saved_model.save(module, str(tmp_path), signatures={"serving_default": serve})
    loaded = tf.saved_model.load(str(tmp_path)).signatures["serving_default"]
    tokens = flat(BATCH)
    np.testing.assert_allclose(loaded(**tokens)["vector"], tower(tokens), rtol=1e-5, atol=1e-6)
    operations = operations_in(loaded.graph)
    assert operations <= set(dir(tf.raw_ops)) | {"_Retval", "_Arg"}
    assert not operations & {"PyFunc", "PyFuncStateless", "EagerPyFunc"}


@every_tower
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocabulary_size": 0}, "^vocabulary_size must be at least 1, but is 0"),
        ({"dim": -1}, "^dim must be at least 1, but is -1"),
        ({"dropout": 1.0}, r"^dropout must be at least 0 and below 1, but is 1\.0"),
        ({"dropout": -0.1}, r"^dropout must be at least 0 and below 1, but is -0\.1"),
    ],
)
def test_invalid_arguments_are_named(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(**{"vocabulary_size": SIZE, "dim": DIM, **arguments})
