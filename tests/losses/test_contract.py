"""What `OrdinalLoss` gives every loss: padding, weights, reductions, shapes, and life in Keras."""

import functools
import math

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.oracles import maths
from tf_smoothclir.losses.ordinal import (
    LOSSES,
    ProportionalOdds,
    SegmentMeanSquaredError,
    SmoothOrdinalSearchLoss,
    ThreePartL2,
    make_loss,
)
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

every_loss = pytest.mark.parametrize("name", sorted(LOSSES))


def value_and_gradient(loss, labels, scores, weights=None):
    scores = tf.convert_to_tensor(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss(labels, scores, weights)
    return value.numpy(), tape.gradient(value, scores).numpy()


# ---- padding ----------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("junk", [0.5, math.nan, math.inf, -math.inf])
def test_appended_padding_changes_nothing_even_with_nan_scores(name, junk):
    loss = make_loss(name, (0.2, 0.7))
    labels, scores = np.array([[0, 1, 2], [2, 0, 0]]), np.float32([[0.9, 0.8, 0], [-1, 0.3, 0.4]])
    value, gradient = value_and_gradient(loss, labels, scores)
    assert value > 0
    padded = np.pad(scores, [(0, 1), (0, 2)], constant_values=junk)
    labels = np.pad(labels, [(0, 1), (0, 2)], constant_values=-1)
    for weights in (None, np.where(labels < 0, junk, 1)):
        padded_value, padded_gradient = value_and_gradient(loss, labels, padded, weights)
        # Vector and scalar code paths of the CPU may round differently: hence not bit for bit.
        np.testing.assert_allclose(padded_value, value, rtol=1e-6)
        np.testing.assert_allclose(padded_gradient[:2, :3], gradient, rtol=1e-6)
        assert np.count_nonzero(padded_gradient) == np.count_nonzero(gradient)


@every_loss
@pytest.mark.parametrize("reduction", ["sum_over_batch_size", "sum", "none"])
@pytest.mark.parametrize("score", [0.5, math.nan])
def test_all_padding_batch_is_zero_with_zero_gradient(name, reduction, score):
    loss = LOSSES[name](reduction=reduction)
    value, gradient = value_and_gradient(loss, [[-1, -1]], [[score, score]])
    assert not np.any(value)
    np.testing.assert_array_equal(gradient, [[0, 0]])


@every_loss
def test_empty_batch_is_zero(name):
    assert LOSSES[name]()(np.zeros([0], "i4"), np.zeros([0], "f4")) == 0


# ---- weights, reductions, shapes ----------------------------------------------------------------


def test_mean_with_weights_divides_by_the_number_of_real_labels():
    loss = SmoothOrdinalSearchLoss()
    # Losses (0.9 - 0.2)² = 0.49 and (0.7 - 0.6)² = 0.01; the third is padding.
    found = loss([0, 2, -1], [0.9, 0.6, 0.0], [10.0, 1.0, 7.0])
    assert found.numpy() == pytest.approx((10 * 0.49 + 1 * 0.01) / 2)


def test_reductions():
    pair = ([0, 2, -1], np.float64([0.9, 0.6, 0.0]))
    each = SmoothOrdinalSearchLoss(reduction="none")(*pair)
    np.testing.assert_allclose(each, [0.49, 0.01, 0])
    assert SmoothOrdinalSearchLoss(reduction="sum")(*pair).numpy() == pytest.approx(0.5)
    assert SmoothOrdinalSearchLoss()(*pair).numpy() == pytest.approx(0.5 / 2)


@pytest.mark.parametrize(
    "weights", [2.0, [2.0, 3.0], [[2.0], [3.0]], [[2.0, 2.0, 2.0], [3.0, 3.0, 3.0]]]
)
def test_weights_of_each_shape_apply_to_leading_axes(weights):
    labels, scores = [[0, 0, 0], [2, 2, 2]], np.float64([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]])
    loss = SmoothOrdinalSearchLoss(reduction="none")
    rows = np.array([[2], [2 if weights == 2.0 else 3]])
    np.testing.assert_allclose(loss(labels, scores, weights), loss(labels, scores) * rows)


def test_weight_column_fits_a_row_of_scores():
    loss = SmoothOrdinalSearchLoss(reduction="none")
    found = loss([0, 0], [0.9, 0.9], [[1.0], [2.0]])
    assert found.shape == (2,)
    assert found[1] == 2 * found[0] > 0


@pytest.mark.parametrize("shape", [(3,), (2, 2), (2, 3, 1, 1), (1, 2, 3)])
def test_weights_that_do_not_fit_are_named(shape):
    with pytest.raises(ValueError, match=r"sample_weight has shape .* y_pred \(2, 3\)"):
        SmoothOrdinalSearchLoss()(np.zeros([2, 3]), np.zeros([2, 3]), np.ones(shape))


@pytest.mark.parametrize("shapes", [((4, 1), (4,)), ((4,), (4, 1)), ((2, 2, 1), (2, 2))])
def test_trailing_axis_does_not_broadcast_labels_against_scores(shapes):
    loss = SmoothOrdinalSearchLoss(reduction="none")
    labels, scores = np.array([0, 1, 2, 0]), np.float64([0.9, 0.1, 0.3, 0.4])
    found = loss(labels.reshape(shapes[0]), scores.reshape(shapes[1]))
    assert found.shape == shapes[1]
    np.testing.assert_array_equal(np.ravel(found), loss(labels, scores))


@pytest.mark.parametrize("shapes", [((4,), (5,)), ((2, 1), (2, 3)), ((4,), (2, 2)), ((), (1, 1))])
def test_shapes_that_do_not_fit_are_both_named(shapes):
    with pytest.raises(ValueError, match=r"y_true has shape \(.*\) and y_pred \(.*\)"):
        SmoothOrdinalSearchLoss()(np.zeros(shapes[0]), np.zeros(shapes[1]))


def test_shapes_known_only_at_run_time_do_not_broadcast():
    loss = SmoothOrdinalSearchLoss()
    spec = tf.TensorSpec([None, None])
    run = tf.function(lambda labels, scores: loss(labels, scores), input_signature=[spec, spec])
    assert run(tf.zeros([2, 3]), tf.ones([2, 3])).numpy() == pytest.approx((1 - 0.2) ** 2)
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.zeros([2, 1]), tf.ones([2, 3]))


# ---- inside Keras -------------------------------------------------------------------------------


def configured_losses():
    return [
        SmoothOrdinalSearchLoss((0.1, 0.5), reduction="sum", name="a"),
        SegmentMeanSquaredError((0.1, 0.3, 0.5)),
        ProportionalOdds((0.1, 0.5), temperature=0.3),
        ThreePartL2((0.1, 0.5, 0.8), reduction="none"),
    ]


@pytest.mark.parametrize("loss", configured_losses(), ids=lambda loss: type(loss).__name__)
def test_serialisation_round_trip(loss):
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    labels, scores = [0, 1, 2], [0.9, 0.9, -0.2]
    np.testing.assert_array_equal(again(labels, scores), loss(labels, scores))


def two_tower_model(loss):
    keras.utils.set_random_seed(0)
    queries, documents = keras.Input([4]), keras.Input([None, 4])
    towers = keras.layers.Dense(3)(queries), keras.layers.Dense(3)(documents)
    model = keras.Model([queries, documents], SmoothCosineSimilarity(1.0)(towers))
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss=loss)
    return model


def candidate_lists():
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(8, 4)).astype("f4"), rng.normal(size=(8, 5, 4)).astype("f4")]
    return inputs, rng.integers(-1, 3, [8, 5])


@every_loss
def test_fit_lowers_the_loss(name):
    model = two_tower_model(make_loss(name, (0.2, 0.7)))
    inputs, labels = candidate_lists()
    history = model.fit(inputs, labels, batch_size=8, epochs=12, verbose=0).history["loss"]
    assert history[-1] < 0.95 * history[0]


def test_fit_reports_the_mean_over_real_labels():
    model = two_tower_model(SmoothOrdinalSearchLoss((0.2, 0.7)))
    inputs, labels = candidate_lists()
    sosl = functools.partial(maths.sosl, thresholds=(0.2, 0.7))
    expected = maths.mean_loss(sosl, labels, model.predict(inputs, verbose=0))
    assert model.evaluate(inputs, labels, verbose=0) == pytest.approx(expected, rel=1e-4)


def test_compiled_model_survives_save_and_reload(tmp_path):
    model = two_tower_model(ProportionalOdds((0.1, 0.5), temperature=0.5))
    inputs, labels = candidate_lists()
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    assert reloaded.loss.get_config() == model.loss.get_config()
    assert reloaded.evaluate(inputs, labels, verbose=0) == pytest.approx(
        model.evaluate(inputs, labels, verbose=0)
    )
