"""What every `RankingLoss` does: padding, weights, reductions, shapes, use in Keras."""

import doctest
import functools
import importlib
import math

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from tests.oracles import maths
from tf_smoothclir.losses.cumulative_logits import CumulativeLogits
from tf_smoothclir.losses.list_mle import ListMLELoss
from tf_smoothclir.losses.mse import SegmentMeanSquaredError
from tf_smoothclir.losses.pairwise import PairwiseHingeLoss
from tf_smoothclir.losses.softmax import SoftmaxLoss
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.losses.three_part_l2 import ThreePartL2
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

LISTWISE = [name for name, loss in LOSSES.items() if loss.needs_lists]
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
    loss = LOSSES[name]()
    labels, scores = np.array([[0, 1, 2], [2, 0, 0]]), np.float32([[0.9, 0.8, 0], [-1, 0.3, 0.4]])
    value, gradient = value_and_gradient(loss, labels, scores)
    assert value != 0
    padded = np.pad(scores, [(0, 1), (0, 2)], constant_values=junk)
    labels = np.pad(labels, [(0, 1), (0, 2)], constant_values=-1)
    real = labels >= 0
    weights = [[1], [1], [junk]] if name in LISTWISE else np.where(real, 1, junk)
    for given in (None, weights):
        padded_value, padded_gradient = value_and_gradient(loss, labels, padded, given)
        # Vector and scalar code paths of the CPU may round differently: hence not bit for bit.
        np.testing.assert_allclose(padded_value, value, rtol=1e-6)
        np.testing.assert_allclose(padded_gradient[:2, :3], gradient, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(padded_gradient[~real], 0)


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
    assert LOSSES[name]()(np.zeros([0, 3], "i4"), np.zeros([0, 3], "f4")) == 0


@every_loss
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_scores_are_computed_in_float32(name, dtype):
    labels, scores = [[0, 1, 2, 2]], tf.cast([[-0.9, 0.1, 0.95, 0.3]], dtype)
    value = LOSSES[name]()(labels, scores)
    assert value.dtype == tf.float32
    assert value.numpy() == LOSSES[name]()(labels, tf.cast(scores, tf.float32)).numpy()


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


@pytest.mark.parametrize("name", LISTWISE)
def test_lists_are_weighted_and_padding_is_not_counted(name):
    labels, scores = [[0, 2, 1], [2, 0, -1], [-1] * 3], [[0.3, 0.1, 0.2], [0.1, 0.5, 0], [0] * 3]
    each = LOSSES[name](reduction="none")(labels, scores).numpy()
    assert each.shape == (3,)
    assert each[2] == 0 not in each[:2]
    for weights in ([3.0, 0.5, 7.0], [[3.0], [0.5], [7.0]]):
        found = LOSSES[name]()(labels, scores, weights).numpy()
        assert found == pytest.approx((3 * each[0] + 0.5 * each[1]) / 2)
    assert LOSSES[name](reduction="sum")(labels, scores).numpy() == pytest.approx(sum(each))


@pytest.mark.parametrize("name", LISTWISE)
@pytest.mark.parametrize("shape", [(2, 3), (3,), (2, 1, 1), (1, 3)])
def test_list_has_one_weight_and_its_documents_none(name, shape):
    with pytest.raises(
        ValueError, match=r"sample_weight has shape .* losses of shape \(2,\).*list"
    ):
        LOSSES[name]()(np.zeros([2, 3]), np.zeros([2, 3], "f4"), np.ones(shape))


@every_loss
def test_weights_whose_shape_shows_at_run_time_do_not_widen_the_losses(name):
    # The loss of one list and three weights would broadcast to three losses without a word.
    any_matrix, any_vector = tf.TensorSpec([None, None]), tf.TensorSpec([None])
    run = tf.function(
        lambda *arguments: LOSSES[name]()(*arguments),
        input_signature=[any_matrix, any_matrix, any_vector],
    )
    assert np.isfinite(run(tf.ones([2, 3]), tf.zeros([2, 3]), tf.ones([2])))
    with pytest.raises(tf.errors.InvalidArgumentError):
        run(tf.ones([1, 3]), tf.zeros([1, 3]), tf.ones([3]))


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
    with pytest.raises(ValueError, match=r"sample_weight has shape .* losses of shape \(2, 3\)"):
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


def test_reduction_that_cannot_be_used_is_named():
    with pytest.raises(ValueError, match=r"reduction must be one of .* got 'median'"):
        SmoothOrdinalSearchLoss(reduction="median")


# ---- what a loss says of itself -----------------------------------------------------------------


@every_loss
def test_every_loss_is_a_keras_loss_that_takes_the_settings_it_declares(name):
    settings = {
        "thresholds": (0.1, 0.5),
        "temperature": 0.3,
        "cut_points": (0.0, 0.4, 0.7),
        "lower_grade_weight": 0.4,
    }
    loss = LOSSES[name].from_settings({**settings, "dim": 64})
    assert isinstance(loss, keras.losses.Loss)
    assert loss.settings
    for setting in loss.settings:
        assert getattr(loss, setting) == settings[setting]


def test_only_ordinal_losses_know_how_many_grades_there_are():
    found = {name: loss().num_grades for name, loss in LOSSES.items()}
    assert found == {name: None if name in LISTWISE else 3 for name in LOSSES}


def test_thresholds_are_those_of_the_losses_that_cut_the_scores():
    with_thresholds = {name for name, loss in LOSSES.items() if loss().thresholds is not None}
    assert with_thresholds == {"sosl", "mse", "proportional_odds", "cumulative_logits"}
    for name in with_thresholds:
        assert LOSSES[name]((0.1, 0.5)).predict_grade([0.3]).numpy().tolist() == [1]
    for name in set(LOSSES) - with_thresholds:
        with pytest.raises(ValueError, match="has no thresholds, so it cannot predict grades: use"):
            LOSSES[name]().predict_grade([0.3])


@pytest.mark.parametrize("loss", LOSSES.values())
def test_worked_example_in_the_docstring(loss):
    module = importlib.import_module(loss.__module__)
    (example,) = doctest.DocTestFinder(recurse=False).find(loss, loss.__name__, module=module)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


# ---- inside Keras -------------------------------------------------------------------------------


def configured_losses():
    return [
        SmoothOrdinalSearchLoss((0.1, 0.5), reduction="sum", name="a"),
        SegmentMeanSquaredError((0.1, 0.3, 0.5)),
        CumulativeLogits((0.1, 0.5), temperature=0.3),
        ThreePartL2((0.1, 0.5, 0.8), reduction="none"),
        SoftmaxLoss(0.3, reduction="none", name="a"),
        *(LOSSES[name](temperature=0.25) for name in LISTWISE),
    ]


@pytest.mark.parametrize("loss", configured_losses(), ids=lambda loss: type(loss).__name__)
def test_serialisation_round_trip(loss):
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert type(again) is type(loss)
    assert again.get_config() == loss.get_config()
    labels, scores = [[0, 1, 2]], [[0.9, 0.9, -0.2]]
    np.testing.assert_array_equal(again(labels, scores), loss(labels, scores))


def model_of_lists(loss):
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
    model = model_of_lists(LOSSES[name]())
    inputs, labels = candidate_lists()
    history = model.fit(inputs, labels, batch_size=8, epochs=12, verbose=0).history["loss"]
    # Not by much: the proportional odds of a perfect model are still about 1.
    assert history[-1] < history[0] - 0.03 * abs(history[0])


def test_fit_reports_the_mean_over_real_labels():
    model = model_of_lists(SmoothOrdinalSearchLoss((0.2, 0.7)))
    inputs, labels = candidate_lists()
    sosl = functools.partial(maths.sosl, thresholds=(0.2, 0.7))
    expected = maths.mean_loss(sosl, labels, model.predict(inputs, verbose=0))
    assert model.evaluate(inputs, labels, verbose=0) == pytest.approx(expected, rel=1e-4)


def test_fit_takes_a_weight_for_each_list():
    model = model_of_lists(SoftmaxLoss())
    inputs, labels = candidate_lists()
    weights = np.array([1, 0] * 4, "f4")
    each = SoftmaxLoss(reduction="none")(labels, model.predict(inputs, verbose=0)).numpy()
    found = model.evaluate(inputs, labels, sample_weight=weights, batch_size=8, verbose=0)
    assert found == pytest.approx((weights * each).sum() / np.any(labels >= 0, axis=1).sum())
    history = model.fit(inputs, labels, sample_weight=weights, batch_size=8, epochs=9, verbose=0)
    assert history.history["loss"][-1] < history.history["loss"][0]


@pytest.mark.parametrize(
    "loss",
    [CumulativeLogits((0.1, 0.5), temperature=0.5), ListMLELoss(0.2), PairwiseHingeLoss(0.2)],
    ids=lambda loss: type(loss).__name__,
)
def test_compiled_model_survives_save_and_reload(loss, tmp_path):
    model = model_of_lists(loss)
    inputs, labels = candidate_lists()
    model.save(tmp_path / "model.keras")
    reloaded = keras.models.load_model(tmp_path / "model.keras")
    assert reloaded.loss.get_config() == model.loss.get_config()
    assert reloaded.evaluate(inputs, labels, verbose=0) == pytest.approx(
        model.evaluate(inputs, labels, verbose=0)
    )
