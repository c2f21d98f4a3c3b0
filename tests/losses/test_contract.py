"""What every `RankingLoss` does, and each beside its oracle, with the hazards by name."""

import doctest
import importlib
import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tensorflow import keras

from tests.cases import cases
from tests.oracles import maths
from tf_smoothclir.api.metrics import MRR, NDCG
from tf_smoothclir.losses.labels import hit_grades, hit_shares
from tf_smoothclir.losses.listwise import OrdinalSoftmaxLoss, SoftmaxLoss
from tf_smoothclir.losses.ordinal import CumulativeLogits, SmoothOrdinalSearchLoss, ThreePartL2
from tf_smoothclir.plugins import LOSSES
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.two_tower.similarity import SmoothCosineSimilarity

LISTWISE = [name for name, loss in LOSSES.items() if loss.needs_lists]
every_loss = cases("name", *sorted(LOSSES))
EACH = SmoothOrdinalSearchLoss(reduction="none")
# Shapes of labels, of scores, and of weights.
MATRIX = (2, 3)
UNLIKE = [((4,), (5,)), ((2, 1), MATRIX), ((4,), (2, 2)), ((), (1, 1))]
OF_PAIRS = [(MATRIX, MATRIX, weights) for weights in ((3,), (2, 2), (2, 3, 1, 1), (1, 2, 3))]
OF_LISTS = [(MATRIX, MATRIX, weights) for weights in ((3,), (2, 1, 1), (1, 3), (2, 2))]
NO_LISTS = [(shape, shape) for shape in ((3,), (2, 3, 1), ())]
BAD_THRESHOLDS = (), (0.7, 0.2), (0.2, 0.2), (-1, 0), (0, 1), (0.2, math.nan), (math.inf,), ("a",)
OF_THRESHOLDS = (*BAD_THRESHOLDS, 0.5), "thresholds must be strictly .* got .*: .*use"
BAD_TEMPERATURES = 0, -1.0, math.nan, math.inf, "hot"
OF_TEMPERATURE = "^temperature must be finite and above 0, got .*: use"
WITH_THRESHOLDS = {"sosl", "mse", "proportional_odds", "cumulative_logits"}
# Of runs, none of them a default.
SETTINGS = {"thresholds": (0.1, 0.5), "temperature": 0.3, "lower_grade_weight": 0.4}
SETTINGS["cut_points"] = (0.0, 0.4, 0.7)
every_ordinal_loss = cases("name", *sorted(WITH_THRESHOLDS), "three_part_l2")
# Few numbers, so that scores lie on cut points.
SCORES = st.sampled_from([-3.0, -1.0, -0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 2.0**100])
every_list_loss = cases("name", *LISTWISE)

NOTHING_RELEVANT = ([0.3, -0.5, 0.9], [0, 0, 0])
ALL_EQUAL = ([0.3, -0.5, 0.9], [1, 1, 1])
# Lists of (scores, grades).
LISTS = [
    ([0.3, -0.2, 0.5, 0.3, 0.1], [1, 0, 2, 0, 0]),  # ties in both
    ([0.9, 0.1], [0, 2]),
    ([-0.4, 0.6, 0.2, -0.1, 0.0, 0.7], [1, 1, 0, 2, 0, 0]),
    ([0.25], [1]),
    NOTHING_RELEVANT,
    ALL_EQUAL,
    # At a temperature of 0.005, far below log(1e-10), the score that some give to padding.
    ([-0.99, -0.9, -0.95], [0, 1, 2]),
    # The widest range: at that temperature, a plain exp would underflow to log(0).
    ([1.0, -1.0, 0.5, 1.0], [0, 2, 1, 0]),
    # 2^128 is infinite in float32.
    ([0.31, -0.22, 0.5], [200, 1, 0]),
    ([0.6, 0.1, 0.2], [130, 129, 128]),
]


def value_and_gradient(loss, labels, scores, weights=None):
    scores = tf.convert_to_tensor(scores)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = loss(labels, scores, weights)
    return value.numpy(), tape.gradient(value, scores).numpy()


@every_loss
@cases("junk", 0.5, math.nan, math.inf, -math.inf)
def test_appended_padding_changes_nothing_even_with_nan_scores(name, junk):
    loss = LOSSES[name]()
    labels, scores = np.array([[0, 1, 2], [2, 0, 0]]), np.float32([[0.9, 0.8, 0], [-1, 0.3, 0.4]])
    value, gradient = value_and_gradient(loss, labels, scores)
    assert value != 0
    padded = np.pad(scores, [(0, 1), (0, 2)], constant_values=junk)
    labels = np.pad(labels, [(0, 1), (0, 2)], constant_values=-1)
    real = labels >= 0
    weights = [[1], [1], [junk]] if name in LISTWISE else np.where(real, 1, junk)
    for of_each in (None, weights):
        padded_value, padded_gradient = value_and_gradient(loss, labels, padded, of_each)
        # Vector and scalar code paths of the CPU may round differently: hence not bit for bit.
        np.testing.assert_allclose(padded_value, value, rtol=1e-6)
        np.testing.assert_allclose(padded_gradient[:2, :3], gradient, rtol=1e-5, atol=1e-7)
        np.testing.assert_array_equal(padded_gradient[~real], 0)


@every_loss
@cases("reduction", "sum_over_batch_size", "sum", "none")
def test_batches_without_a_document_are_zero_with_zero_gradient(name, reduction):
    loss = LOSSES[name](reduction=reduction)
    for score in (0.5, math.nan):
        value, gradient = value_and_gradient(loss, [[-1, -1]], [[score, score]])
        assert not np.any(value)
        np.testing.assert_array_equal(gradient, [[0, 0]])
    assert not np.any(loss(np.zeros([0, 3], "i4"), np.zeros([0, 3], "f4")))


@every_loss
@cases("dtype", "float16", "bfloat16")
def test_half_precision_scores_are_computed_in_float32(name, dtype):
    labels, scores = [[0, 1, 2, 2]], tf.cast([[-0.9, 0.1, 0.95, 0.3]], dtype)
    value = LOSSES[name]()(labels, scores)
    assert value.dtype == tf.float32
    assert value.numpy() == LOSSES[name]()(labels, tf.cast(scores, tf.float32)).numpy()


@every_loss
def test_a_mask_of_keras_is_padding(name):
    loss, listwise = LOSSES[name](), name in LISTWISE
    labels, scores = np.array([[0, 2, 1]] * 3), [[0.9, 0.8, 0], [0.1, 0.3, 0], [0] * 3]
    real = np.array([[1, 1, 1], [1, 1, 0], [0, 0, 0]], bool)
    weights = np.float32([3, 0.5, 7])
    masked = tf.constant(scores, tf.float64)
    masked._keras_mask = tf.constant(real)
    of_pairs = real * weights[:, np.newaxis]  # as Keras 2 makes them
    for some in (None, weights, weights[:, np.newaxis], of_pairs):
        of_lists = weights if listwise and some is of_pairs else some
        expected = loss(np.where(real, labels, -1), scores, of_lists).numpy()
        assert loss(labels, masked, some).numpy() == pytest.approx(expected, rel=1e-6)
        if listwise and some is of_pairs:  # which say it by themselves
            assert loss(labels, scores, some).numpy() == pytest.approx(expected, rel=1e-6)
    column = tf.constant(scores)[..., tf.newaxis]
    column._keras_mask = masked._keras_mask
    if listwise:
        with pytest.raises(tf.errors.InvalidArgumentError, match="of one list have different wei"):
            loss(labels, masked, np.float32([[2, 1, 1], [1, 1, 0], [0, 0, 0]]))
    else:
        expected = loss(np.where(real, labels, -1), scores).numpy()
        assert loss(labels, column).numpy() == pytest.approx(expected, rel=1e-6)


@every_loss
def test_labels_are_finite_numbers(name):
    loss, scores = LOSSES[name](), [[0.1, 0.2]]
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(tf.errors.InvalidArgumentError, match="a label is NaN or infinite"):
            loss([[1.0, bad]], scores)
    for bad, kind in (([[True, False]], "bool"), ([["1", "0"]], "string")):
        with pytest.raises(ValueError, match=f"y_true holds {kind} values, but grades are numbers"):
            loss(bad, scores)
    ragged = tf.ragged.constant([[1, 0], [2]])
    with pytest.raises(ValueError, match=r"y_true is ragged: give y_true.to_tensor\(-1\) and y_p"):
        loss(ragged, tf.cast(ragged, tf.float32))
    for kind in ("uint8", "int8", "int64", "float16"):
        assert loss(np.array([[2, 0]], kind), scores) == loss([[2, 0]], scores)


def test_reductions_and_weights_by_hand():
    pair = [0, 2, -1], np.float64([0.9, 0.6, 0.0])
    # Losses (0.9 - 0.2)² = 0.49 and (0.7 - 0.6)² = 0.01; the third is padding.
    np.testing.assert_allclose(EACH(*pair), [0.49, 0.01, 0])
    assert SmoothOrdinalSearchLoss(reduction="sum")(*pair).numpy() == pytest.approx(0.5)
    assert SmoothOrdinalSearchLoss()(*pair).numpy() == pytest.approx(0.5 / 2)
    weighted = SmoothOrdinalSearchLoss()(*pair, [10.0, 1.0, 7.0]).numpy()
    assert weighted == pytest.approx((10 * 0.49 + 1 * 0.01) / 2)


@cases("name", *LISTWISE)
def test_lists_are_weighted_and_padding_is_not_counted(name):
    labels, scores = [[0, 2], [2, 0], [-1, -1]], [[0.3, 0.1], [0.1, 0.5], [0, 0]]
    each = LOSSES[name](reduction="none")(labels, scores).numpy()
    assert each.shape == (3,)
    assert each[2] == 0 not in each[:2]
    column = [[3.0], [0.5], [7.0]]
    for weights in (np.ravel(column), column, np.tile(column, 2)):
        found = LOSSES[name]()(labels, scores, weights).numpy()
        assert found == pytest.approx((3 * each[0] + 0.5 * each[1]) / 2)
    assert LOSSES[name](reduction="sum")(labels, scores).numpy() == pytest.approx(sum(each))
    for some, number in ((labels, 2), ([[0, 0], [-1, 0], [-1, -1]], 2)):
        assert LOSSES[name]().num_terms(tf.constant(some)) == number


@cases("weights", 2.0, [2, 3.0], [[2], [3.0]], [[2] * 3, [3.0] * 3], [[[2]] * 3, [[3.0]] * 3])
def test_weights_of_each_shape_apply_to_leading_axes(weights):
    labels, scores = [[0, 0, 0], [2, 2, 2]], np.float64([[0.9, 0.8, 0.7], [0.1, 0.2, 0.3]])
    rows = np.array([[2], [2 if weights == 2.0 else 3]])
    np.testing.assert_allclose(EACH(labels, scores, weights), EACH(labels, scores) * rows)
    found = EACH([0, 0], [0.9, 0.9], [[1.0], [2.0]])  # a column fits a row of scores
    np.testing.assert_allclose(found, [0.49, 2 * 0.49])


@cases("shapes", ((4, 1), (4,)), ((4,), (4, 1)), ((2, 2, 1), (2, 2)))
def test_trailing_axis_does_not_broadcast_labels_against_scores(shapes):
    labels, scores = np.array([0, 1, 2, 0]), np.float64([0.9, 0.1, 0.3, 0.4])
    found = EACH(labels.reshape(shapes[0]), scores.reshape(shapes[1]))
    assert found.shape == shapes[1]
    np.testing.assert_array_equal(np.ravel(found), EACH(labels, scores))


@every_loss
def test_shapes_known_only_at_run_time_do_not_broadcast(name):
    any_matrix, any_vector = tf.TensorSpec([None, None]), tf.TensorSpec([None])
    run = tf.function(LOSSES[name](), input_signature=[any_matrix, any_matrix, any_vector])
    assert np.isfinite(run(tf.ones([2, 3]), tf.zeros([2, 3]), tf.ones([2])))
    # The loss of one list and three weights would be three losses without a word.
    for labels, weights in (([1, 3], [3]), ([1, 1], [1])):
        with pytest.raises(tf.errors.InvalidArgumentError):
            run(tf.ones(labels), tf.zeros([1, 3]), tf.ones(weights))
    # TensorFlow's optimizer removes a reshape of [None] to [2] or to [None].
    for shape in ([None], [2]):
        of_vectors = tf.function(EACH, input_signature=[any_vector, tf.TensorSpec(shape)])
        assert of_vectors(tf.zeros([2]), tf.zeros([2])).shape == (2,)
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\(None,\) and .*give one"):
            of_vectors(tf.zeros([1]), tf.zeros([2]))
    of_rows = tf.function(EACH, input_signature=[any_matrix, any_matrix, tf.TensorSpec(None)])
    for weights in ([1.0, 2.0], [[1.0], [2.0]], [[1.0, 1.0], [2.0, 2.0]]):
        found = of_rows(tf.zeros([2, 2]), tf.fill([2, 2], 0.9), tf.constant(weights))
        np.testing.assert_allclose(found, [[0.49, 0.49], [0.98, 0.98]], rtol=1e-6)
    of_any = tf.function(EACH, input_signature=[tf.TensorSpec(None), any_matrix])
    found = of_any(tf.zeros([2, 1, 1]), [[0.9], [0.1]])
    np.testing.assert_allclose(found, [[0.49], [0]], rtol=1e-6)


@cases(
    "loss, shapes, message",
    (EACH, UNLIKE, r"y_true has shape \(.*\) and y_pred \(.*\)"),
    (EACH, OF_PAIRS, r"sample_weight has shape .* losses of shape \(2, 3\)"),
    (SoftmaxLoss(), OF_LISTS, r"sample_weight has shape .* losses of shape \(2,\).*list"),
    (SoftmaxLoss(), NO_LISTS, r"y_pred has shape .*SoftmaxLoss .*\[lists, list_size\]"),
)
def test_shapes_that_do_not_fit_are_named(loss, shapes, message):
    for one in shapes:
        with pytest.raises(ValueError, match=message):
            loss(*map(np.zeros, one))
    with pytest.raises(ValueError, match=r"SoftmaxLoss .* no list_lengths: give .*candidate lists"):
        SoftmaxLoss().laid_out(tf.constant([0, 2]), tf.constant([0.1, 0.2]), None)


@cases(
    "make, values, message",
    *((LOSSES[name], *OF_THRESHOLDS) for name in sorted(WITH_THRESHOLDS)),
    (lambda value: SoftmaxLoss(temperature=value), BAD_TEMPERATURES, rf"{OF_TEMPERATURE} 0\.1$"),
    (lambda value: CumulativeLogits((0.2,), value), BAD_TEMPERATURES, rf"{OF_TEMPERATURE} 1\.0$"),
    (ThreePartL2, [(0.2, 0.9), (0.2, 0.55, 0.9, 0.95), (0.9, 0.55, 0.2)], "cut_points must be"),
    (lambda weight: OrdinalSoftmaxLoss(lower_grade_weight=weight), [-0.1, 1.1], "be in .0, 1"),
    (lambda value: SoftmaxLoss(reduction=value), ["median"], "must be one of .* got 'median'"),
)
def test_arguments_that_cannot_be_used_are_named(make, values, message):
    for value in values:
        with pytest.raises(ValueError, match=message):
            make(value)
    for end in (0, 1):
        assert OrdinalSoftmaxLoss(lower_grade_weight=end).lower_grade_weight == end


@every_loss
def test_every_loss_is_a_keras_loss_that_takes_the_settings_it_declares(name):
    loss = LOSSES[name].from_settings({**SETTINGS, "dim": 64})
    assert isinstance(loss, keras.losses.Loss)
    declared = {setting: getattr(loss, setting) for setting in loss.settings}
    assert {} != declared == {setting: SETTINGS[setting] for setting in declared}
    loss = LOSSES[name].from_config({**loss.get_config(), "reduction": "sum", "name": "a"})
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert (type(again), again.get_config()) == (type(loss), loss.get_config())
    labels, scores = [[0, 1, 2]], [[0.9, 0.9, -0.2]]
    np.testing.assert_array_equal(again(labels, scores), loss(labels, scores))


def test_ordinal_losses_know_their_grades_and_some_predict_them():
    found = {name: loss().num_grades for name, loss in LOSSES.items()}
    assert found == {name: None if name in LISTWISE else 3 for name in LOSSES}
    with_thresholds = {name for name, loss in LOSSES.items() if loss().thresholds is not None}
    assert with_thresholds == WITH_THRESHOLDS
    for name in with_thresholds:
        assert LOSSES[name](iter((0.1, 0.5))).predict_grade([0.3]).numpy().tolist() == [1]
    for name in set(LOSSES) - with_thresholds:
        with pytest.raises(ValueError, match="has no thresholds, so it cannot predict grades: use"):
            LOSSES[name]().predict_grade([0.3])
    scores = tf.constant([[-1.0, 0.1, 0.2], [0.3, 0.7, 0.9]])
    # 0.2 and 0.7 themselves belong to the lower grade.
    found = SmoothOrdinalSearchLoss().predict_grade(scores)
    assert found.dtype == tf.int32
    np.testing.assert_array_equal(found, [[0, 0, 0], [1, 1, 2]])
    assert SmoothOrdinalSearchLoss().predict_grade([0, 1]).numpy().tolist() == [0, 2]


@cases("loss", *LOSSES.values())
def test_worked_example_in_the_docstring(loss):
    module = importlib.import_module(loss.__module__)
    (example,) = doctest.DocTestFinder(recurse=False).find(loss, loss.__name__, module=module)
    assert example.examples
    assert doctest.DocTestRunner().run(example).failed == 0


def model_of_lists(loss, **metrics):
    """A model of candidate lists, inputs and labels."""
    keras.utils.set_random_seed(0)
    queries, documents = keras.Input([4]), keras.Input([None, 4])
    masked = keras.layers.Masking()(documents)
    towers = keras.layers.Dense(3)(queries), keras.layers.Dense(3)(masked)
    model = keras.Model([queries, documents], SmoothCosineSimilarity(1.0)(towers))
    model.compile(optimizer=keras.optimizers.Adam(0.05), loss=loss, **metrics)
    rng = np.random.default_rng(0)
    inputs = [rng.normal(size=(8, 4)).astype("f4"), rng.normal(size=(8, 5, 4)).astype("f4")]
    return model, inputs, rng.integers(-1, 3, [8, 5])


@cases("loss", SmoothOrdinalSearchLoss(), SoftmaxLoss())
def test_keras_gives_weights_and_masks_of_documents_to_losses_and_metrics(loss):
    compiled = {"metrics": [MRR()], "weighted_metrics": [NDCG()]}
    model, inputs, labels = model_of_lists(loss, **compiled)
    inputs[1][labels < 0] = inputs[1][3:5, 1:] = inputs[1][6] = 0  # masked, though some have grades
    scores, real = model.predict(inputs, verbose=0), np.where(~inputs[1].any(axis=2), -1, labels)
    for weights in (None, np.array([1, 0, 2, 0.5, 0, 1, 3, 1], "f4")):
        found = model.evaluate(inputs, abs(labels), 8, sample_weight=weights, verbose=0)
        metrics = MRR(), NDCG()
        metrics[0].update_state(real, scores)
        metrics[1].update_state(real, scores, weights)
        expected = [loss(real, scores, weights), *(metric.result() for metric in metrics)]
        assert found == pytest.approx([float(one) for one in expected], rel=1e-5)


def test_sosl_gradient_by_hand():
    loss = SmoothOrdinalSearchLoss((0.2, 0.7), reduction="sum")
    _, gradient = value_and_gradient(loss, [0, 1, 1, 1, 2], np.float64([0.9, 0.9, 0.5, 0, 0.1]))
    # 2 (r - θ_y) above the segment, -2 (θ_{y-1} - r) below it.
    expected = [2 * (0.9 - 0.2), 2 * (0.9 - 0.7), 0, -2 * (0.2 - 0), -2 * (0.7 - 0.1)]
    np.testing.assert_allclose(gradient, expected)
    beyond = SmoothOrdinalSearchLoss((0.2, 0.7), reduction="none")([2, 0], [1.5, -1.5])
    np.testing.assert_allclose(beyond, [(1.5 - 1) ** 2, (-1 + 1.5) ** 2])  # segments end at ±1


@every_ordinal_loss
@settings(max_examples=80)
@given(st.integers(0, 2**31), st.sets(st.integers(-99, 99), min_size=1, max_size=5).map(sorted))
def test_matches_the_oracle_on_padded_weighted_lists_of_any_number_of_grades(name, seed, edges):
    rng = np.random.default_rng(seed)
    edges = (0.2, 0.55, 0.9) if name == "three_part_l2" else tuple(edge / 100 for edge in edges)
    grades = 3 if name == "three_part_l2" else len(edges) + 1
    temperature = {"temperature": 0.5} if name == "cumulative_logits" else {}
    loss = LOSSES[name](edges, **temperature)
    assert loss.num_grades == grades
    labels, scores = rng.integers(-1, grades, [4, 5]), rng.uniform(-1, 1, [4, 5])
    weights = rng.uniform(0, 3, [4, 5])

    def slowly(score, grade):
        return getattr(maths, name)(score, grade, edges, **temperature)

    expected = maths.mean_loss(slowly, labels, scores, weights)
    assert loss(labels, scores, weights).numpy() == pytest.approx(expected)


@cases("temperature", 1e-3, 1.0, 1e3)
def test_cumulative_logits_are_finite_at_any_temperature(temperature):
    loss = CumulativeLogits((0.2, 0.200001, 0.7), temperature, reduction="sum")
    for grade in range(4):
        for score in (-1.0, 0.2, 1.0):
            value, gradient = value_and_gradient(loss, [grade], [score])
            assert np.isfinite([value, *gradient]).all()
            assert abs(gradient[0]) <= 1.001 / temperature


@every_ordinal_loss
def test_labels_above_the_grades_give_nan_and_fractions_round_down(name):
    loss, scores = LOSSES[name](), [0.5, 0.3, -0.1, 0.2]
    expected = loss([0, 1, 2, -1], scores)
    assert loss([0.0, 1.0, 2.0, -1.0], scores) == loss([0.9, 1.5, 2.1, -0.5], scores) == expected
    for label in (3, 99):
        assert np.isnan(loss([0, label], [0.1, 0.2]).numpy())


@cases(
    "scores, expected",
    # By their scores 2, 2, 2, 1; by their shares of 8, 1, 7 / 8, 1 / 2, 1 / 4: 2, 2, 1, 0.
    ([8, 7, 4, 2], [2, 2, 1, 0]),
    # The best of nothing good: by their scores 1, 1, 0, 0; by their shares 2, 2, 1, 0.
    ([2, 1.8, 1.0, 0.5], [1, 1, 0, 0]),
    ([0, 0, -1, -2], [0, 0, 0, 0]),
    ([-1, -1, -2, -4], [0, 0, 0, 0]),  # a share of a negative score says nothing
)
def test_a_hit_has_the_lower_grade_of_its_score_and_its_share(scores, expected):
    found = hit_grades(np.float32([scores, scores]), (1.0, 3.0), (0.3, 0.8))
    assert found.numpy().tolist() == [expected, expected]


@given(
    hnp.arrays(np.float32, st.tuples(st.integers(0, 3), st.integers(0, 6)), elements=SCORES),
    st.lists(SCORES, min_size=1, max_size=4).map(sorted),
    st.lists(SCORES, max_size=4).map(sorted),
)
@settings(max_examples=60)
def test_cut_points_give_the_grades_of_the_graph(scores, of_scores, of_shares):
    scores = -np.sort(-scores, axis=-1)
    cut_points = CutPoints(tuple(of_scores), tuple(of_shares))
    expected = hit_grades(scores, of_scores, of_shares).numpy()
    np.testing.assert_array_equal(cut_points.of_hits(scores), expected)
    assert hit_grades(np.float32([8, 2, 1]), (1.0, 3.0), ()).numpy().tolist() == [2, 1, 0]
    for scores in (np.zeros((2, 0), np.float32), np.zeros((0, 3), np.float32)):
        assert hit_grades(scores, (1.0,), (0.5,)).shape == scores.shape
        assert hit_shares(scores).shape == scores.shape


def batch(lists):
    scores = tf.constant([score for scores, _ in lists for score in scores], tf.float32)
    grades = tf.constant([grade for _, grades in lists for grade in grades], tf.int32)
    return grades, scores, tf.constant([len(grades) for _, grades in lists], tf.int32)


def of_flat(loss, grades, scores, lengths):
    """The loss of a flat batch, as a model has it."""
    return loss(*loss.laid_out(grades, scores, lengths))


def of_lists(loss, lists):
    return value_and_gradient(lambda *flat: of_flat(loss, *flat), *batch(lists))


def each(name, lists, temperature=0.1):
    """The loss of each list that the code has."""
    return of_flat(LOSSES[name](temperature=temperature, reduction="none"), *batch(lists)).numpy()


def by_hand(name, lists, temperature=0.1):
    """The loss of each list."""
    function = getattr(maths, name)
    return [function([s / temperature for s in scores], grades) for scores, grades in lists]


@every_list_loss
@cases("temperature", 0.005, 0.1, 1.0)
def test_each_list_and_their_mean_equal_the_oracle_with_finite_gradients(name, temperature):
    lists, expected = [([], []), *LISTS], by_hand(name, LISTS, temperature)
    found = each(name, lists, temperature)
    np.testing.assert_allclose(found, [0, *expected], rtol=1e-5, atol=1e-7 / temperature)
    value, gradient = of_lists(LOSSES[name](temperature=temperature), lists)
    # A list without documents does not count.
    assert value == pytest.approx(np.mean(expected), rel=1e-5)
    assert np.isfinite(gradient).all()
    assert np.isnan(LOSSES[name]()([[0, 2, 1]], [[0.1, math.nan, 0.3]]))


@every_list_loss
def test_gradient_equals_finite_differences(name):
    lists = [([0.31, -0.22, 0.5, 0.43, 0.1], [1, 0, 2, 0, 0]), ([0.6, 0.1], [0, 2])]
    _, gradient = of_lists(LOSSES[name](), lists)
    step = 1e-6
    for place, found in enumerate(gradient):
        which, where = (0, place) if place < 5 else (1, place - 5)
        ends = []
        for sign in (1, -1):
            scores = [list(scores) for scores, _ in lists]
            scores[which][where] += sign * step
            moved = [(s, grades) for s, (_, grades) in zip(scores, lists)]
            ends.append(np.mean(by_hand(name, moved)))
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3, abs=1e-4)


def test_softmax_equals_that_of_tensorflow_ranking():
    reason = "not on the stack of Keras 3, whose losses tests/golden.json compares with this one"
    tfr = pytest.importorskip("tensorflow_ranking", reason=reason)
    theirs = tfr.keras.losses.SoftmaxLoss(temperature=0.1)
    # No padding and no ties.
    labels = tf.constant([[1, 0, 2], [2, 1, 0]], tf.float32)
    scores = tf.constant([[0.3, -0.2, 0.5], [0.1, 0.2, 0.0]])
    ours = SoftmaxLoss()(labels, scores).numpy()
    assert ours == pytest.approx(theirs(labels, scores).numpy(), rel=1e-5)


@every_list_loss
def test_lists_without_a_preference_have_no_gradient(name):
    for one in (NOTHING_RELEVANT, ([0.4], [0]), ([0.4], [2])):
        value, gradient = of_lists(LOSSES[name](), [one])
        np.testing.assert_array_equal([value, *gradient], 0)
    value, gradient = of_lists(LOSSES[name](), [ALL_EQUAL])
    assert np.isfinite([value, *gradient]).all()


@every_list_loss
def test_one_graph_takes_every_batch_and_nothing_in_it_is_random(name):
    loss = LOSSES[name]()
    specs = [tf.TensorSpec([None], kind) for kind in (tf.int32, tf.float32, tf.int32)]
    run = tf.function(lambda *lists: of_flat(loss, *lists), input_signature=specs)
    for lists in (LISTS, LISTS[:1], [ALL_EQUAL], LISTS[:5]):
        (expected,) = {of_flat(loss, *batch(lists)).numpy() for _ in range(10)}
        (found,) = {run(*batch(lists)).numpy() for _ in range(10)}
        assert found == pytest.approx(expected, rel=1e-5)
