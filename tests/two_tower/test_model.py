"""The two-tower model: scores, vectors, learning by `fit`, save and reload."""

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.oracles import maths
from tests.two_tower.small_model import (
    DIM,
    FORMS,
    GRADES,
    INPUTS,
    SIZE,
    apart,
    batches,
    in_lists,
    make_model,
    make_tower,
    tensors,
    together,
)
from tf_smoothclir import CNNTower, LazyAdam, SmoothOrdinalSearchLoss, TwoTower
from tf_smoothclir.data.model_inputs import PairInputs
from tf_smoothclir.losses.softmax import SoftmaxLoss
from tf_smoothclir.plugins import LOSSES


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0])
def test_scores_are_the_similarity_of_the_towers_outputs(shared, epsilon):
    model = make_model(shared=shared, epsilon=epsilon)
    queries = model.query_tower(tensors()["query"]).numpy()
    documents = model.document_tower(tensors()["document"]).numpy()
    expected = [maths.smooth_cosine(q, d, epsilon) for q, d in zip(queries, documents)]
    np.testing.assert_allclose(model(tensors()), expected, atol=1e-6)


@pytest.mark.parametrize("shared", [False, True])
def test_in_batch_every_query_is_scored_with_every_document(shared):
    model = make_model(shared=shared, in_batch=True)
    queries, documents = (model.vectors(role, tensors()[role]).numpy() for role in INPUTS)
    np.testing.assert_allclose(model(tensors()), queries @ documents.T, atol=1e-6)


def test_in_batch_pairs_weigh_as_in_lists_and_others_add_to_the_loss():
    model = make_model(in_batch=True)
    grades = np.array([[2, 0, 0, 0], [0, 0, 0, 0], [0, 2, 1, 0], [0, 0, 2, 0]])
    each = SmoothOrdinalSearchLoss((0.2, 0.7), reduction="none")(grades, model(tensors()))
    found = model.compute_loss(in_lists(), tf.constant(grades), model(tensors()))
    assert float(found) == pytest.approx(np.sum(each) / (2 + 2 + 2 + 2), rel=1e-6)


@pytest.mark.parametrize("loss", [SmoothOrdinalSearchLoss((0.2, 0.7)), SoftmaxLoss()])
def test_in_batch_training_ranks_relevant_documents_first(loss):
    model = make_model(in_batch=True, rate=0.3)
    model.compile(LazyAdam(0.3), loss)
    grades = np.array([[2, 0, 0, 0], [0, 0, 0, 0], [0, 2, 1, 0], [0, 0, 2, 0]])
    data = batches(in_lists(), grades)
    loss_before = model.evaluate(data, verbose=0)
    model.fit(data.repeat(60), verbose=0)
    assert model.evaluate(data, verbose=0) < loss_before / 2
    scores = model(tensors()).numpy()
    assert scores[0].argmax() == 0
    assert scores[2].argmax() == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_shared_tower_learns_the_same_from_both_at_once(form):
    grades, inputs = FORMS[form]
    models = [make_model(shared=True, in_batch=form == "in_batch") for _ in range(2)]
    losses = [
        [
            float(model.train_step(batch)["batch_loss"])
            for batch in batches(inputs(texts), grades).repeat(5)
        ]
        for model, texts in zip(models, (apart(), together()))
    ]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    np.testing.assert_allclose(
        *(model.query_tower.embeddings.numpy() for model in models), atol=1e-5
    )
    assert losses[0][-1] < losses[0][0]


@pytest.mark.parametrize("form", FORMS)
def test_fit_evaluate_and_predict_take_named_tuples_and_dictionaries_alike(form):
    grades, inputs = FORMS[form]
    more = {} if form == "pairs" else {"list_lengths": tf.ones([4], tf.int32)}
    found = []
    for each in (inputs(apart()), {**tensors(), **more}):
        model = make_model(in_batch=form == "in_batch")
        data = batches(each, grades)
        losses = model.fit(data, epochs=2, verbose=0, validation_data=data).history
        found.append((losses, model.evaluate(data, verbose=0), model.predict(data, verbose=0)))
    (losses, loss, scores), (other_losses, other_loss, other_scores) = found
    assert (losses, loss) == (other_losses, other_loss)
    np.testing.assert_array_equal(scores, other_scores)


def test_both_at_once_names_each_row_once_by_itself(monkeypatch):
    # What adds up equal rows costs as much as many other parts of a step.
    def fail(_):
        raise AssertionError

    monkeypatch.setattr("tf_smoothclir.two_tower.model.each_row_once", fail)
    gradients = []
    model = make_model(shared=True)
    monkeypatch.setattr(
        model.optimizer, "apply_gradients", lambda pairs: gradients.extend(g for g, _ in pairs)
    )
    model.train_step((PairInputs(together()), tf.constant(GRADES)))
    (gradient,) = gradients
    assert sorted(gradient.indices.numpy()) == [2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(AssertionError):
        model.train_step((tensors(), tf.constant(GRADES)))


@pytest.mark.parametrize(
    ("tower", "shared", "expected"),
    [
        (lambda: make_tower(1), True, True),
        (lambda: make_tower(1), False, False),
        (lambda: CNNTower(SIZE, DIM), True, False),  # pads queries to the length of documents
        (lambda: keras.layers.Embedding(SIZE, DIM), True, False),  # nobody knows
    ],
)
def test_both_at_once_is_for_a_shared_tower_that_does_not_pad(tower, shared, expected):
    query_tower = tower()
    model = TwoTower(query_tower, query_tower if shared else tower())
    assert model.encodes_both_at_once == expected


def test_epsilon_is_one_by_default():
    assert TwoTower(make_tower(1), make_tower(2)).similarity.epsilon == 1.0


@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0])
def test_inner_products_of_the_vectors_are_the_scores(epsilon):
    model = make_model(epsilon=epsilon)
    vectors = {role: model.vectors(role, tokens) for role, tokens in tensors().items()}
    products = tf.reduce_sum(vectors["query"] * vectors["document"], axis=1)
    np.testing.assert_allclose(products, model(tensors()), atol=1e-6)


def test_towers_share_nothing_unless_asked():
    assert len(make_model().trainable_weights) == 2
    assert len(make_model(shared=True).trainable_weights) == 1


def learnable_set():
    """Token n of the queries means token n of the documents; the rest is chance."""
    rng = np.random.default_rng(0)
    queries = rng.integers(2, 22, size=(400, 1))
    documents = np.where(np.arange(400) % 4 == 0, queries[:, 0], rng.integers(2, 22, size=400))
    grades = np.where(documents == queries[:, 0], 2, 0).astype("i4")
    inputs = {"query": queries.astype("i4"), "document": documents[:, None].astype("i4")}
    return inputs, grades


def test_fit_on_padded_ids_lowers_the_loss_and_raises_a_metric():
    inputs, grades = learnable_set()
    model = make_model(size=22)

    def precision_of_the_best_hundred():
        scores = model.predict(inputs, batch_size=400, verbose=0)
        return (grades[np.argsort(-scores)[:100]] == 2).mean()

    loss = model.evaluate(inputs, grades, verbose=0)
    precision = precision_of_the_best_hundred()
    model.fit(inputs, grades, epochs=20, batch_size=50, verbose=0)
    assert model.evaluate(inputs, grades, verbose=0) < loss / 4
    assert precision < 0.5 < 0.9 < precision_of_the_best_hundred()


def test_the_history_has_more_than_keras_puts_there_only_where_asked_for():
    model, more = make_model(), {"batch_loss", "gradient_norm", "pairs"}
    model.compile(LazyAdam(0.05), model.loss, metrics=["mae"])
    expected = {False: {"loss", "mae"}, True: {"loss", "mae", *more}}
    for asked in (False, True, False):
        history = model.fit(batches(), verbose=0, log_steps=asked).history
        assert {name.replace("mean_absolute_error", "mae") for name in history} == expected[asked]


def test_fit_traces_a_step_once(monkeypatch):
    # An optimizer that makes its variables in the first step costs a second tracing.
    original, calls = TwoTower.train_step, []

    def counted(model, data):
        calls.append(data)
        return original(model, data)

    monkeypatch.setattr(TwoTower, "train_step", counted)
    make_model().fit(batches(), epochs=2, verbose=0)
    assert len(calls) == 1


def test_a_model_that_is_not_compiled_says_so():
    model = TwoTower(make_tower(1), make_tower(2))
    model.build()
    with pytest.raises((RuntimeError, ValueError), match="compile"):
        model.fit(batches(), verbose=0)


@pytest.mark.parametrize("in_batch", [False, True])
@pytest.mark.parametrize("loss", [SmoothOrdinalSearchLoss((0.2, 0.7)), SoftmaxLoss()])
def test_fit_and_evaluate_show_the_loss_that_is_trained(loss, in_batch):
    model = make_model(in_batch=in_batch)
    model.compile(LazyAdam(0.05), loss)
    lengths = tf.constant([1, 1, 1, 1] if in_batch else [2, 1, 1, 0])
    inputs = {**tensors(), "list_lengths": lengths}
    grades = tf.linalg.diag(tf.constant(GRADES)) if in_batch else tf.constant(GRADES)
    data = tf.data.Dataset.from_tensors((inputs, grades))
    scores = model(inputs, training=True)
    expected = float(model.compute_loss(inputs, grades, scores))
    assert expected > 0
    evaluated = model.evaluate(data, return_dict=True, verbose=0)
    assert evaluated["loss"] == pytest.approx(expected, rel=1e-5)
    history = model.fit(data, epochs=2, verbose=0, validation_data=data).history
    assert history.keys() == {"loss", "val_loss"}
    assert history["loss"][0] == pytest.approx(expected, rel=1e-5)
    assert history["loss"][1] == pytest.approx(history["val_loss"][0], rel=1e-5)
    assert len(model.weights) == 2  # the tables: what measures is no weight


def test_a_listwise_loss_takes_a_weight_for_each_list():
    model = make_model()
    model.compile(LazyAdam(0.05), SoftmaxLoss())
    inputs = {**tensors(), "list_lengths": tf.constant([2, 2, 0, 0])}
    scores = tf.reshape(model(inputs), [2, 2])
    each = SoftmaxLoss(reduction="none")(np.reshape(GRADES, [2, 2]), scores).numpy()
    weights = tf.constant([2.0, 0.5, 7.0, 7.0])
    weighted = tf.data.Dataset.from_tensors((inputs, tf.constant(GRADES), weights))
    found = model.evaluate(weighted, verbose=0)
    assert found == pytest.approx((2 * each[0] + 0.5 * each[1]) / 2, rel=1e-5)
    logs = model.fit(weighted, verbose=0, log_steps=True).history
    assert logs["batch_loss"][0] == pytest.approx(found, rel=1e-5)
    wrong = tf.data.Dataset.from_tensors((inputs, tf.constant(GRADES), tf.ones([3])))
    # The sizes show at run time alone.
    with pytest.raises(tf.errors.InvalidArgumentError, match="shape"):
        model.fit(wrong, verbose=0, log_steps=True)


@pytest.mark.parametrize(
    "name",
    [  # one for `make test`: `tests/losses/test_contract.py` saves each of them in a Keras model
        pytest.param(name, marks=[] if name == "softmax" else pytest.mark.slow)
        for name, loss in LOSSES.items()
        if loss.needs_lists
    ],
)
def test_a_listwise_loss_survives_save_and_reload_and_trains_on(name, tmp_path):
    model = make_model()
    model.compile(LazyAdam(0.05), LOSSES[name](temperature=0.25))
    data = batches({**tensors(), "list_lengths": tf.constant([2, 2, 0, 0])})
    model.fit(data, verbose=0)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    assert type(reloaded.loss) is LOSSES[name]
    assert reloaded.loss.get_config() == model.loss.get_config()
    assert reloaded.evaluate(data, verbose=0) == model.evaluate(data, verbose=0)
    for each in (model, reloaded):
        each.fit(data, verbose=0)
    np.testing.assert_array_equal(reloaded(tensors()), model(tensors()))


def test_a_listwise_loss_needs_lists():
    model = make_model()
    model.compile(LazyAdam(0.05), SoftmaxLoss())
    with pytest.raises(ValueError, match="the batch has no list_lengths: give"):
        model.fit(batches(), verbose=0)


def test_another_loss_removes_the_weights_of_the_former_loss():
    class WeightedLoss(SmoothOrdinalSearchLoss):
        def __init__(self):
            super().__init__()
            self.layer = keras.layers.Dense(1, use_bias=False)
            self.layer.build((None, 1))

        def call(self, y_true, y_pred):
            return tf.reduce_sum(self.layer.kernel) * super().call(y_true, y_pred)

    model = make_model(clip=1.0)
    for loss, weights in ((WeightedLoss(), 3), (SmoothOrdinalSearchLoss(), 2), (WeightedLoss(), 3)):
        model.compile(LazyAdam(0.05), loss)
        model.fit(batches(), verbose=0)
        assert len(model.trainable_weights) == weights


@pytest.mark.parametrize("shared", [False, True])
def test_a_reloaded_model_scores_and_trains_as_before(shared, tmp_path):
    model = make_model(shared=shared, clip=1e-3)
    model.fit(batches(), verbose=0)
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(reloaded(tensors()), model(tensors()))
    assert (reloaded.query_tower is reloaded.document_tower) == shared
    assert (reloaded.similarity.epsilon, reloaded.clip_norm) == (0.5, 1e-3)
    # The optimizer came along: both make the same next step.
    for each in (model, reloaded):
        each.fit(batches(), verbose=0)
    np.testing.assert_array_equal(reloaded(tensors()), model(tensors()))


@pytest.mark.parametrize("shared", [False, True])
def test_weights_alone_survive_the_round_trip(shared, tmp_path):
    model = make_model(shared=shared)
    model.save_weights(tmp_path / "model.weights.h5")
    twin = TwoTower.from_config(model.get_config())
    assert not np.array_equal(twin.query_tower.embeddings, np.zeros([SIZE, DIM]))
    for weight in twin.weights:
        weight.assign(tf.zeros_like(weight))
    twin.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(twin(tensors()), model(tensors()))
