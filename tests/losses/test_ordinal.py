"""Each ordinal loss by itself: hand arithmetic, the oracle, bounds, predicted grades, arguments."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import maths
from tf_smoothclir.losses.cumulative_logits import CumulativeLogits
from tf_smoothclir.losses.mse import SegmentMeanSquaredError
from tf_smoothclir.losses.proportional_odds import ProportionalOdds
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.losses.three_part_l2 import ThreePartL2
from tf_smoothclir.plugins import LOSSES

SETTINGS = settings(deadline=None, max_examples=40, derandomize=True)
ORACLES = {
    "sosl": lambda score, grade: maths.sosl(score, grade, (0.2, 0.7)),
    "mse": lambda score, grade: maths.mse(score, grade, (0.2, 0.7)),
    "proportional_odds": lambda score, grade: maths.proportional_odds(score, grade, (0.2, 0.7)),
    "cumulative_logits": lambda score, grade: maths.cumulative_logits(score, grade, (0.2, 0.7)),
    "three_part_l2": maths.three_part_l2,
}
THRESHOLD_LOSSES = (
    SmoothOrdinalSearchLoss,
    SegmentMeanSquaredError,
    ProportionalOdds,
    CumulativeLogits,
)
every_loss = pytest.mark.parametrize("name", sorted(ORACLES))


def value_and_gradient(loss, labels, scores):
    scores = tf.convert_to_tensor(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss(labels, scores)
    return value.numpy(), tape.gradient(value, scores).numpy()


def losses_of(loss, *pairs):
    grades, scores = zip(*pairs)
    config = {**loss.get_config(), "reduction": "none"}
    return type(loss).from_config(config)(grades, np.float64(scores)).numpy()


# ---- hand arithmetic ------------------------------------------------------------------------


def test_sosl_two_grades_by_hand():
    # One threshold, 0.5: grade 0 wants [-1, 0.5], grade 1 wants [0.5, 1].
    found = losses_of(SmoothOrdinalSearchLoss([0.5]), (0, 0.9), (0, 0.1), (1, 0.9), (1, 0.1))
    np.testing.assert_allclose(found, [(0.9 - 0.5) ** 2, 0, 0, (0.5 - 0.1) ** 2])


def test_sosl_three_grades_by_hand():
    # 0.2 and 0.7: grade 0 wants [-1, 0.2], grade 1 [0.2, 0.7], grade 2 [0.7, 1].
    pairs = [(0, 0.9), (0, -0.9), (1, 0.9), (1, 0.5), (1, -0.4), (2, 0.8), (2, 0.1)]
    expected = [(0.9 - 0.2) ** 2, 0, (0.9 - 0.7) ** 2, 0, (0.2 + 0.4) ** 2, 0, (0.7 - 0.1) ** 2]
    np.testing.assert_allclose(losses_of(SmoothOrdinalSearchLoss(), *pairs), expected)


def test_sosl_five_grades_by_hand():
    loss = SmoothOrdinalSearchLoss([-0.5, 0.0, 0.25, 0.5])
    # At r = 0.1, inside grade 2's [0, 0.25], each grade pays to its own nearer edge.
    expected = [(0.1 + 0.5) ** 2, (0.1 - 0) ** 2, 0, (0.25 - 0.1) ** 2, (0.5 - 0.1) ** 2]
    np.testing.assert_allclose(losses_of(loss, *[(grade, 0.1) for grade in range(5)]), expected)


def test_sosl_gradient_by_hand():
    loss = SmoothOrdinalSearchLoss((0.2, 0.7), reduction="sum")
    _, gradient = value_and_gradient(loss, [0, 1, 1, 1, 2], np.float64([0.9, 0.9, 0.5, 0, 0.1]))
    # 2 (r - θ_y) above the segment, -2 (θ_{y-1} - r) below it.
    expected = [2 * (0.9 - 0.2), 2 * (0.9 - 0.7), 0, -2 * (0.2 - 0), -2 * (0.7 - 0.1)]
    np.testing.assert_allclose(gradient, expected)


def test_mse_targets_the_middle_of_the_segment_by_hand():
    middles = [(-1 + 0.2) / 2, (0.2 + 0.7) / 2, (0.7 + 1) / 2]
    found = losses_of(SegmentMeanSquaredError(), (0, 0.3), (1, 0.3), (2, 0.3))
    np.testing.assert_allclose(found, [(0.3 - middle) ** 2 for middle in middles])


def test_proportional_odds_three_grades_by_hand():
    # At r = 0.2: grade 0 pays log(1 + e^0) above and log(1 + e^(-1 - 0.2)) below, grade 1 log(1 +
    # e^(0.2 - 0.7)) and log(1 + e^0), grade 2 log(1 + e^(0.2 - 1)) and log(1 + e^(0.7 - 0.2)).
    found = losses_of(ProportionalOdds(), (0, 0.2), (1, 0.2), (2, 0.2))
    pairs = [(0, -1.2), (-0.5, 0), (-0.8, 0.5)]
    expected = [sum(math.log(1 + math.exp(x)) for x in pair) for pair in pairs]
    np.testing.assert_allclose(found, expected)


@SETTINGS
@given(score=st.floats(-1, 1), grade=st.sampled_from([0, 1, 2]))
def test_proportional_odds_are_nearly_a_multiple_of_the_mse(score, grade):
    # Around the middle of a segment of half width h, PO is a constant plus σ'(h) times the squared
    # distance: 0.229, 0.246 and 0.249. Far from it the factor falls, but not below 0.21.
    edges = (-1, 0.2, 0.7, 1)
    middle, half = (edges[grade] + edges[grade + 1]) / 2, (edges[grade + 1] - edges[grade]) / 2
    mse = losses_of(SegmentMeanSquaredError(), (grade, score))
    odds = losses_of(ProportionalOdds(), (grade, score), (grade, middle))
    assert odds[1] == pytest.approx(2 * math.log(1 + math.exp(-half)))
    assert odds[0] - odds[1] >= 0.21 * mse[0] - 1e-12
    assert odds[0] - odds[1] <= 0.25 * mse[0] + 1e-12


def test_cumulative_logits_two_grades_by_hand():
    # One threshold: the logistic loss of the score's distance to it.
    found = losses_of(CumulativeLogits([0.5]), (0, 0.9), (1, 0.9))
    expected = [math.log(1 + math.exp(0.9 - 0.5)), math.log(1 + math.exp(0.5 - 0.9))]
    np.testing.assert_allclose(found, expected)


def test_cumulative_logits_middle_grade_by_hand():
    # T = 0.5 and r = 0.45: σ((0.7 - 0.45) / 0.5) - σ((0.2 - 0.45) / 0.5) = σ(0.5) - σ(-0.5).
    expected = -math.log(1 / (1 + math.exp(-0.5)) - 1 / (1 + math.exp(0.5)))
    found = losses_of(CumulativeLogits((0.2, 0.7), temperature=0.5), (1, 0.45))
    np.testing.assert_allclose(found, [expected])


def test_cumulative_logits_probabilities_sum_to_one():
    loss = CumulativeLogits((-0.3, 0.2, 0.21, 0.7), temperature=0.1)
    for score in (-1.0, 0.0, 0.205, 1.0):
        found = losses_of(loss, *[(grade, score) for grade in range(5)])
        assert np.exp(-found).sum() == pytest.approx(1)


def test_three_part_l2_by_hand():
    pairs = [(0, 0.5), (0, 0.1), (1, 0.6), (1, 0.5), (2, 0.6), (2, 0.95)]
    expected = [(0.5 - 0.2) ** 2, 0, (0.6 - 0.55) ** 2, 0, (0.9 - 0.6) ** 2, 0]
    np.testing.assert_allclose(losses_of(ThreePartL2(), *pairs), expected, atol=1e-15)


# ---- the oracle, bounds, hazards --------------------------------------------------------------


@every_loss
@SETTINGS
@given(seed=st.integers(0, 2**31))
def test_matches_the_oracle_on_padded_weighted_lists(name, seed):
    rng = np.random.default_rng(seed)
    labels, scores = rng.integers(-1, 3, [4, 5]), rng.uniform(-1, 1, [4, 5])
    weights = rng.uniform(0, 3, [4, 5])
    found = LOSSES[name]()(labels, scores, weights).numpy()
    assert found == pytest.approx(maths.mean_loss(ORACLES[name], labels, scores, weights))


@SETTINGS
@given(
    thresholds=st.lists(st.integers(-99, 99), min_size=1, max_size=6, unique=True).map(sorted),
    scores=st.tuples(st.floats(-1, 1), st.floats(-1, 1)),
)
def test_sosl_gradient_is_bounded_by_4_and_2_smooth(thresholds, scores):
    loss = SmoothOrdinalSearchLoss([value / 100 for value in thresholds], reduction="sum")
    for grade in range(loss.num_grades):
        _, gradient = value_and_gradient(loss, [grade, grade], np.float64(scores))
        assert max(abs(gradient)) <= 4
        assert abs(gradient[0] - gradient[1]) <= 2 * abs(scores[0] - scores[1]) + 1e-12


@pytest.mark.parametrize("temperature", [1e-3, 1.0, 1e3])
def test_cumulative_logits_are_finite_at_any_temperature(temperature):
    loss = CumulativeLogits((0.2, 0.200001, 0.7), temperature, reduction="sum")
    for grade in range(4):
        for score in (-1.0, 0.2, 1.0):
            value, gradient = value_and_gradient(loss, [grade], [score])
            assert np.isfinite(value)
            assert np.isfinite(gradient).all()
            assert abs(gradient[0]) <= 1.001 / temperature


@every_loss
def test_a_label_above_the_grades_gives_nan(name):
    loss = LOSSES[name]()
    assert np.isnan(loss([0, 3], [0.1, 0.2]).numpy())
    assert np.isnan(loss([0, 99], [0.1, 0.2]).numpy())


@every_loss
def test_float_labels_equal_int_labels_and_fractions_round_down(name):
    loss = LOSSES[name]()
    scores = [0.5, 0.3, -0.1, 0.2]
    expected = loss([0, 1, 2, -1], scores)
    assert loss([0.0, 1.0, 2.0, -1.0], scores) == expected
    assert loss([0.9, 1.5, 2.1, -0.5], scores) == expected


# ---- predicted grades ---------------------------------------------------------------------------


def test_predicted_grade_by_hand():
    scores = tf.constant([[-1.0, 0.1, 0.2], [0.3, 0.7, 0.9]])
    # 0.2 and 0.7 themselves belong to the lower grade.
    found = SmoothOrdinalSearchLoss().predict_grade(scores)
    assert found.dtype == tf.int32
    np.testing.assert_array_equal(found, [[0, 0, 0], [1, 1, 2]])


@SETTINGS
@given(score=st.one_of(st.floats(-1, 1), st.sampled_from([-0.5, 0.0, 0.25, 1.0, -1.0])))
def test_only_the_predicted_grade_of_all_up_to_it_has_zero_loss(score):
    loss = SmoothOrdinalSearchLoss((-0.5, 0.0, 0.25), reduction="none")
    scores = np.full(4, score)
    grade = int(loss.predict_grade(np.float64(score)))
    found = loss(np.arange(4), scores).numpy()
    assert found[grade] == 0
    # Squares of distances below 1e-160 underflow, so that only the clear ones are compared.
    clear = score - np.array([-0.5, 0.0, 0.25][:grade]) > 1e-150
    assert (found[:grade][clear] > 0).all()


@pytest.mark.parametrize("loss_class", THRESHOLD_LOSSES)
@pytest.mark.parametrize("thresholds", [(0.0,), (0.2, 0.7), (-0.5, 0.0, 0.25, 0.5)])
def test_num_grades(loss_class, thresholds):
    assert loss_class(thresholds).num_grades == len(thresholds) + 1


# ---- arguments ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thresholds",
    [(), (0.7, 0.2), (0.2, 0.2), (-1, 0), (0, 1), (0.2, math.nan), (math.inf,), ("a",), 0.5],
)
def test_thresholds_that_cannot_be_used_are_named(thresholds):
    for loss_class in THRESHOLD_LOSSES:
        with pytest.raises(ValueError, match=r"thresholds must be strictly .* got .*: .*use"):
            loss_class(thresholds)


@pytest.mark.parametrize("cut_points", [(0.2, 0.9), (0.2, 0.55, 0.9, 0.95), (0.9, 0.55, 0.2)])
def test_cut_points_that_cannot_be_used_are_named(cut_points):
    with pytest.raises(ValueError, match=r"cut_points must be .* got"):
        ThreePartL2(cut_points)


@pytest.mark.parametrize("temperature", [0, -1.0, math.nan, math.inf, "hot"])
def test_temperature_that_cannot_be_used_is_named(temperature):
    with pytest.raises(ValueError, match=r"temperature must be .* got"):
        CumulativeLogits(temperature=temperature)
