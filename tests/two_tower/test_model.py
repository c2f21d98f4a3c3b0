"""The two-tower model: scores, vectors, learning by `fit`, save and reload."""

from unittest import mock

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

import tf_smoothclir as sc
from tests.cases import cases
from tests.oracles import maths
from tests.two_tower import small_model
from tests.two_tower.small_model import GRADES, batches, make_model, make_tower, tensors
from tf_smoothclir import InputError, LazyAdam, SmoothOrdinalSearchLoss, SoftmaxLoss, TwoTower
from tf_smoothclir.api.metrics import MRR
from tf_smoothclir.data.model_inputs import PairInputs
from tf_smoothclir.plugins import LOSSES

SOSL, SOFTMAX = SmoothOrdinalSearchLoss((0.2, 0.7)), SoftmaxLoss(temperature=0.25)


# Of pairs and of lists; the others take the same way, which takes seconds each.
QUICK = ("sosl", "softmax")
MARKS = {name: [] if name in QUICK else pytest.mark.slow for name in LOSSES}
EVERY_LOSS = [*(pytest.param(LOSSES[n](), id=n, marks=MARKS[n]) for n in MARKS), "mse"]


def name_of(value):
    """A name for a test, the same in every process."""
    return value.name if hasattr(value, "name") else str(value)


@cases("shared", False, True)
@cases("epsilon", 0.0, 0.25, 1.0)
def test_scores_are_the_similarity_of_the_towers_outputs(shared, epsilon):
    model, inputs = make_model(shared=shared, epsilon=epsilon), tensors()
    queries = model.query_tower(inputs["query"]).numpy()
    documents = model.document_tower(inputs["document"]).numpy()
    every = [[maths.smooth_cosine(q, d, epsilon) for d in documents] for q in queries]
    np.testing.assert_allclose(model(inputs), np.diag(every), atol=1e-6)
    vectors = [model.vectors(role, tokens).numpy() for role, tokens in inputs.items()]
    np.testing.assert_allclose(vectors[0] @ vectors[1].T, every, atol=1e-6)
    in_lists = {**inputs, "list_lengths": tf.constant([2, 0, 1, 1])}
    found = [every[query][document] for document, query in enumerate([0, 0, 2, 3])]
    np.testing.assert_allclose(model(in_lists), found, atol=1e-6)
    in_batch = make_model(shared=shared, epsilon=epsilon, in_batch=True)
    np.testing.assert_allclose(in_batch(inputs), every, atol=1e-6)


def test_in_batch_pairs_weigh_as_in_lists_and_others_add_to_the_loss():
    model = make_model(in_batch=True)
    grades = np.array([[2, 0, 0, 0], [0, 0, 0, 0], [0, 2, 1, 0], [0, 0, 2, 0]])
    each = SmoothOrdinalSearchLoss((0.2, 0.7), reduction="none")(grades, model(tensors()))
    in_lists = {**tensors(), "list_lengths": tf.constant([2, 2, 2, 2])}
    found = model.compute_loss(in_lists, tf.constant(grades), model(tensors()))
    assert float(found) == pytest.approx(np.sum(each) / (2 + 2 + 2 + 2), rel=1e-6)


@cases("form", *small_model.FORMS)
def test_a_shared_tower_learns_the_same_from_both_at_once(form):
    grades, inputs = small_model.FORMS[form]
    models = [make_model(shared=True, in_batch=form == "in_batch") for _ in range(2)]
    losses = [
        [float(take_step(model, inputs(texts), grades)["batch_loss"]) for _ in range(5)]
        for model, texts in zip(models, (small_model.apart(), small_model.together()))
    ]
    np.testing.assert_allclose(*losses, rtol=1e-5)
    np.testing.assert_allclose(*(model.get_weights()[0] for model in models), atol=1e-5)
    assert losses[0][-1] < losses[0][0]


@cases("form, loss", ("pairs", SOSL), ("lists", SOSL), ("lists", SOFTMAX), ("in_batch", SOFTMAX))
def test_fit_evaluate_and_predict_take_tuples_and_dictionaries(form, loss):
    grades, inputs = small_model.FORMS[form]
    more = {} if form == "pairs" else {"list_lengths": tf.constant(small_model.LENGTHS[form])}
    found = []
    for each in (inputs(small_model.apart()), {**tensors(), **more}):
        model = make_model(in_batch=form == "in_batch")
        model.compile(LazyAdam(0.05), loss)
        data = batches(each, grades)
        expected = float(model.compute_loss(each, tf.constant(grades), model(each)))
        assert expected > 0
        assert model.evaluate(data, verbose=0) == pytest.approx(expected, rel=1e-5)
        history = model.fit(data, epochs=2, verbose=0, validation_data=data).history
        assert history.keys() == {"loss", "val_loss"}
        assert history["loss"][0] == pytest.approx(expected, rel=1e-5)
        assert history["loss"][1] == pytest.approx(history["val_loss"][0], rel=1e-5)
        assert len(model.weights) == 2  # the tables: what measures is no weight
        found.append((history, model.predict(data, verbose=0).tolist()))
    assert found[0] == found[1]


def test_both_at_once_names_each_row_once_by_itself(monkeypatch):
    # What adds up equal rows costs as much as many other parts of a step.
    adds_up = mock.Mock(side_effect=AssertionError)
    monkeypatch.setattr("tf_smoothclir.two_tower.model.each_row_once", adds_up)
    model, applied = make_model(shared=True), []
    monkeypatch.setattr(model.optimizer, "apply_gradients", applied.extend)
    model.logged_step((PairInputs(small_model.together()), tf.constant(GRADES)))
    assert sorted(applied[0][0].indices.numpy()) == [2, 3, 4, 5, 6, 7, 8]
    with pytest.raises(AssertionError):
        model.logged_step((tensors(), tf.constant(GRADES)))


def test_both_at_once_is_for_a_shared_tower_that_does_not_pad():
    pooling, other = make_tower(1), make_tower(1)
    assert TwoTower(pooling, pooling).encodes_both_at_once
    assert not TwoTower(pooling, other).encodes_both_at_once
    # One pads queries to the length of documents; of the other nobody knows.
    shape = small_model.SIZE, small_model.DIM
    for tower in (sc.CNNTower(*shape), keras.layers.Embedding(*shape)):
        assert not TwoTower(tower, tower).encodes_both_at_once


def test_fit_traces_a_step_once_and_shows_what_keras_does(monkeypatch):
    # An optimizer that makes its variables in the first step costs a second tracing.
    original, calls = TwoTower.train_step, []

    def counted(model, data):
        calls.append(data)
        return original(model, data)

    monkeypatch.setattr(TwoTower, "train_step", counted)
    model = make_model()
    model.fit(batches(), epochs=2, verbose=0)
    assert len(calls) == 1
    model.compile(LazyAdam(0.05), model.loss, metrics=["mae"])
    history = model.fit(batches(), verbose=0).history
    assert {name.replace("mean_absolute_error", "mae") for name in history} == {"loss", "mae"}


def part(queries, documents, **more):
    found = {name: tf.constant(value) for name, value in more.items()}
    for role, rows in (("query", queries), ("document", documents)):
        chosen = tf.gather(tf.RaggedTensor.from_row_lengths(*tensors()[role].values()), rows)
        found[role] = {"ids": chosen.values, "lengths": chosen.row_lengths()}
    return found


@cases("loss", *EVERY_LOSS, ids=name_of)
def test_the_loss_and_metrics_of_an_epoch_do_not_depend_on_its_batches(loss):
    lists = getattr(loss, "needs_lists", False)
    grades = [0, 1, 2, 2, 0 if loss == "mse" else -1]
    if lists:  # of three documents, of one, and of padding alone
        whole = part([0, 2, 3], [0, 1, 2, 3, 0], list_lengths=[3, 1, 1])
        parts = part([0], [0, 1, 2], list_lengths=[3]), part([2, 3], [3, 0], list_lengths=[1, 1])
    else:
        whole = part([0, 0, 0, 2, 3], [0, 1, 2, 3, 0])
        parts = part([0, 0, 0], [0, 1, 2]), part([2, 3], [3, 0])
    model = make_model()
    model.compile(keras.optimizers.SGD(0.0), loss, metrics=[] if lists else ["mae"])
    scores = model(whole).numpy()
    if lists:
        in_lists = [grades[:3], [2, -1, -1]], [scores[:3], [scores[3]] * 3]
        each = type(loss)(reduction="none")(*in_lists)
    elif loss == "mse":
        each = np.square(scores - grades)
    else:
        each = type(loss)(reduction="none")(grades, scores)[:4]
    expected = {"loss": np.mean(each), "mae": np.mean(abs(scores - grades))}
    at_once = batches(whole, grades)
    apart = batches(parts[0], grades[:3]).concatenate(batches(parts[1], grades[3:]))
    for data in (at_once, apart):
        history = model.fit(data, validation_data=data, verbose=0).history
        for name, (value,) in history.items():
            short = name.removeprefix("val_").replace("mean_absolute_error", "mae")
            assert value == pytest.approx(expected[short], rel=1e-5)


def test_losses_and_metrics_of_keras_take_a_weight_for_each_pair():
    weights, scores = np.float32([1, 2, 3, 4]), make_model()(tensors()).numpy()
    squares = weights * (scores - GRADES) ** 2
    for shape in ([4], [4, 1]):
        model = make_model()
        model.compile(LazyAdam(0.05), "mse", weighted_metrics=["mse"])
        data = (tensors(), np.reshape(GRADES, shape), np.reshape(weights, shape))
        found = model.evaluate(tf.data.Dataset.from_tensors(data), verbose=0)
        assert found == pytest.approx([squares.sum() / 4, squares.sum() / 10], rel=1e-5)


@cases("loss, weights", (SOFTMAX, [2.0, 9.0, 0.5, 9.0]), (SOSL, [2.0, 2.0, 0.5, 0.5]), ids=name_of)
def test_losses_and_metrics_of_lists_are_weighted_by_lists(loss, weights):
    model = make_model()
    model.compile(LazyAdam(0.05), loss, metrics=[MRR()], weighted_metrics=[MRR(name="weighted")])
    inputs = {**tensors(), "list_lengths": tf.constant([2, 0, 2, 0])}
    scores = np.reshape(model(inputs), [2, 2])
    # The best of the first list and the worse of the second one are relevant: ranks 1 and 2.
    grades = np.array([scores[0] == max(scores[0]), scores[1] == min(scores[1])], "i4")
    each = type(loss).from_config({**loss.get_config(), "reduction": "none"})(grades, scores)
    expected = np.mean(np.transpose(each) * [2, 0.5])  # the columns are lists
    data = tf.data.Dataset.from_tensors((inputs, np.ravel(grades), np.float32(weights)))
    found = model.evaluate(data, verbose=0)
    of_metrics = (1 + 1 / 2) / 2, (2 * 1 + 0.5 / 2) / (2 + 0.5)
    assert found == pytest.approx([expected, *of_metrics], rel=1e-5)
    assert model.fit(data, verbose=0).history["loss"] == [pytest.approx(expected, rel=1e-5)]


def test_a_model_without_weights_or_with_frozen_ones_says_so(tmp_path):
    path, model = str(tmp_path / "model.keras"), TwoTower(make_tower(1), make_tower(2))
    for save in (model.save, model.save_weights, model.export):
        with pytest.raises(InputError, match=r"model: it has no weights yet, .*Call model.build()"):
            save(path)
    assert not list(tmp_path.iterdir())
    model.query_tower.trainable = model.document_tower.trainable = False
    model.compile(LazyAdam(0.05), SOSL)
    model.build()
    with pytest.raises(ValueError, match="all weights of the model are frozen"):
        model.fit(batches(), verbose=0)
    assert np.isfinite(model.evaluate(batches(), verbose=0))


def test_a_listwise_loss_without_lists_or_with_too_few_weights_is_an_error():
    model = make_model()
    model.compile(LazyAdam(0.05), SoftmaxLoss())
    inputs = {**tensors(), "list_lengths": tf.constant([2, 2, 0, 0])}
    wrong = tf.data.Dataset.from_tensors((inputs, tf.constant(GRADES), tf.ones([3])))
    with pytest.raises((ValueError, tf.errors.InvalidArgumentError), match="shape"):
        model.fit(wrong, verbose=0)
    with pytest.raises(ValueError, match="the batch has no list_lengths: give"):
        model.fit(batches(), verbose=0)


@cases("lengths", [4], [1] * 4, [2] * 4)
def test_lists_have_a_query_each_and_all_documents(lengths):
    model = make_model()
    inputs = tensors({**small_model.INPUTS, "document": {"ids": [6] * 5, "lengths": [1] * 5}})
    inputs["list_lengths"] = tf.constant(lengths)
    for run in (model, tf.function(lambda inputs: model(inputs))):
        with pytest.raises(tf.errors.InvalidArgumentError, match="list_lengths: give one for each"):
            run(inputs)


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


@cases("shared", False, True)
@cases("loss", SOSL, SOFTMAX)
def test_a_reloaded_model_scores_and_trains_as_before(loss, shared, tmp_path):
    model = make_model(shared=shared, clip=1e-3)
    model.compile(LazyAdam(0.05), loss)
    data = batches({**tensors(), "list_lengths": tf.constant([2, 2, 0, 0])})
    model.fit(data, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    twin = TwoTower.from_config(model.get_config())
    assert not np.array_equal(twin.query_tower.embeddings, model.query_tower.embeddings)
    twin.load_weights(tmp_path / "model.weights.h5")
    for each in (reloaded, twin):
        np.testing.assert_array_equal(each(tensors()), model(tensors()))
        assert (each.query_tower is each.document_tower) == shared
        assert (each.similarity.epsilon, each.clip_norm) == (0.5, 1e-3)
    # The optimizer came along: both make the same next step.
    for each in (model, reloaded):
        each.fit(data, verbose=0)
    np.testing.assert_array_equal(reloaded(tensors()), model(tensors()))


def take_step(model, inputs=None, grades=GRADES):  # without a graph
    return model.logged_step((inputs or tensors(), tf.constant(grades)))


@cases("shared", False, True)
@cases("clip", 0.0, 1e-3)
def test_a_step_logs_loss_and_norm_and_clips_the_sum_of_both_uses_of_a_table(shared, clip):
    model = make_model(shared=shared, clip=clip)
    with tf.GradientTape() as tape:
        loss = model.loss(tf.constant(GRADES), model(tensors()))
    # Dense, so that a row that is named twice counts with its sum.
    gradients = map(tf.convert_to_tensor, tape.gradient(loss, model.trainable_variables))
    gradients = [gradient.numpy().astype("f8") for gradient in gradients]
    norm = np.sqrt(sum((g**2).sum() for g in gradients))
    assert norm > 2e-3
    logs = take_step(model)
    assert float(logs["gradient_norm"]) == pytest.approx(norm, rel=1e-5)  # before clipping
    assert float(logs["batch_loss"]) == pytest.approx(float(loss), rel=1e-6)
    factor = clip / norm if clip else 1
    for gradient, moment in zip(gradients, model.optimizer._momentums, strict=True):
        np.testing.assert_allclose(moment, 0.1 * gradient * factor, rtol=1e-4, atol=1e-9 * factor)


class WithUnusedWeight(sc.AveragePoolingTower):
    def build_rest(self):
        super().build_rest()
        self.unused = self.add_weight(name="unused", shape=(), initializer="ones")


@cases("clip", 0.0, 1e-3)
def test_a_weight_without_a_gradient_and_a_frozen_tower_stay(clip):
    towers = WithUnusedWeight(small_model.SIZE, small_model.DIM), make_tower(2, trainable=False)
    model = TwoTower(*towers, sc.SmoothCosineSimilarity(0.5), clip_norm=clip)
    model.build()
    model.compile(LazyAdam(0.05), SmoothOrdinalSearchLoss((0.2, 0.7)))
    before = [tower.embeddings.numpy() for tower in towers]
    take_step(model)
    assert float(towers[0].unused) == 1.0
    assert (towers[0].embeddings.numpy() != before[0]).any()
    np.testing.assert_array_equal(towers[1].embeddings, before[1])


def test_batch_of_empty_texts_gives_zero_scores_and_a_finite_step():
    empty, model = {"ids": [], "lengths": [0, 0]}, make_model()
    before = model.get_weights()
    inputs = tensors({"query": empty, "document": empty})
    np.testing.assert_array_equal(model(inputs), [0, 0])
    logs = take_step(model, inputs, [2, 0])
    assert float(logs["gradient_norm"]) == 0.0
    assert float(logs["batch_loss"]) == pytest.approx(0.7**2 / 2)  # (θ_2 - 0)² and 0
    np.testing.assert_equal(model.get_weights(), before)
