"""Each listwise loss: hand arithmetic, the oracle in plain Python, and the hazards by name."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracles import list_losses as oracle
from tf_smoothclir.losses.list_mle import ListMLELoss
from tf_smoothclir.losses.softmax import SoftmaxLoss
from tf_smoothclir.plugins import LOSSES

LISTWISE = [name for name, loss in LOSSES.items() if loss.needs_lists]
every_loss = pytest.mark.parametrize("name", LISTWISE)

# Lists of (scores, grades); the first has ties in both.
LISTS = [
    ([0.3, -0.2, 0.5, 0.3, 0.1], [1, 0, 2, 0, 0]),
    ([0.9, 0.1], [0, 2]),
    ([-0.4, 0.6, 0.2, -0.1, 0.0, 0.7], [1, 1, 0, 2, 0, 0]),
    ([0.25], [1]),
]
NOTHING_RELEVANT = ([0.3, -0.5, 0.9], [0, 0, 0])
ALL_EQUAL = ([0.3, -0.5, 0.9], [1, 1, 1])


def batch(lists):
    scores = tf.constant([score for scores, _ in lists for score in scores], tf.float32)
    grades = tf.constant([grade for _, grades in lists for grade in grades], tf.int32)
    return scores, grades, tf.constant([len(grades) for _, grades in lists], tf.int32)


def of_flat(loss, scores, grades, lengths):
    """The loss of a flat batch, as a model has it."""
    return loss(*loss.laid_out(grades, scores, lengths))


def value_and_gradient(loss, lists):
    scores, grades, lengths = batch(lists)
    with tf.GradientTape() as tape:
        tape.watch(scores)
        value = of_flat(loss, scores, grades, lengths)
    return value.numpy(), tape.gradient(value, scores).numpy()


def each(name, lists, temperature=0.1):
    """The loss of each list that the code has."""
    loss = LOSSES[name](temperature=temperature, reduction="none")
    return of_flat(loss, *batch(lists)).numpy()


def by_hand(name, lists, temperature):
    """The loss of each list."""
    function = getattr(oracle, name)
    return [function([s / temperature for s in scores], grades) for scores, grades in lists]


# ---- values -------------------------------------------------------------------------------------


@every_loss
@pytest.mark.parametrize("temperature", [0.1, 1.0])
def test_mean_of_the_lists_equals_the_oracle(name, temperature):
    value, _ = value_and_gradient(LOSSES[name](temperature=temperature), LISTS)
    assert value == pytest.approx(np.mean(by_hand(name, LISTS, temperature)), rel=1e-5)


@every_loss
def test_each_list_equals_the_oracle(name):
    found = each(name, [*LISTS, NOTHING_RELEVANT, ALL_EQUAL])
    expected = by_hand(name, [*LISTS, NOTHING_RELEVANT, ALL_EQUAL], 0.1)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_two_documents_by_hand():
    # Scores 0.2 and 0.1 are 2 and 1 at temperature 0.1; the lower one is relevant, grade 2.
    worse = math.log(1 + math.e)  # -log(e / (e + e²)) = log(1 + e^(2 - 1))
    rank = 1 + 1 / (1 + math.exp(-1))  # of the relevant one
    expected = {
        "ordinal_softmax": worse,
        "softmax": 2 * worse,
        "approx_ndcg": -1 / math.log2(1 + rank),
        "pairwise_hinge": 1 - (1 - 2),
        "pairwise_logistic": worse,
        "list_mle": worse,
    }
    assert set(expected) == set(LISTWISE)
    for name, value in expected.items():
        found = LOSSES[name](temperature=0.1)([[0, 2]], [[0.2, 0.1]])
        assert found.numpy() == pytest.approx(value, rel=1e-5)


lists_of_any_kind = st.lists(
    st.lists(st.tuples(st.integers(-9, 9), st.integers(0, 3)), min_size=1, max_size=6),
    min_size=1,
    max_size=4,
)


@every_loss
@settings(max_examples=25, deadline=None)
@given(lists_of_any_kind)
def test_any_lists_equal_the_oracle_with_finite_gradients(name, drawn):
    lists = [([s / 10 for s, _ in pairs], [g for _, g in pairs]) for pairs in drawn]
    value, gradient = value_and_gradient(LOSSES[name](), lists)
    assert value == pytest.approx(np.mean(by_hand(name, lists, 0.1)), rel=1e-4, abs=1e-5)
    assert np.isfinite(gradient).all()


@every_loss
def test_gradient_equals_finite_differences(name):
    lists = [([0.31, -0.22, 0.5, 0.43, 0.1], [1, 0, 2, 0, 0]), ([0.6, 0.1], [0, 2])]
    _, gradient = value_and_gradient(LOSSES[name](), lists)
    step = 1e-6
    for place, found in enumerate(gradient):
        which, where = (0, place) if place < 5 else (1, place - 5)
        ends = []
        for sign in (1, -1):
            scores = [list(scores) for scores, _ in lists]
            scores[which][where] += sign * step
            moved = [(s, grades) for s, (_, grades) in zip(scores, lists)]
            ends.append(np.mean(by_hand(name, moved, 0.1)))
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("name", ["softmax", "approx_ndcg", "list_mle"])
def test_equals_the_keras_losses_of_tensorflow_ranking_where_those_are_sound(name):
    tfr = pytest.importorskip(
        "tensorflow_ranking",
        reason="not on the stack of Keras 3, whose losses tests/golden.json compares with this one",
    )

    kinds = {
        "softmax": tfr.keras.losses.SoftmaxLoss,
        "approx_ndcg": tfr.keras.losses.ApproxNDCGLoss,
        "list_mle": tfr.keras.losses.ListMLELoss,
    }
    theirs = kinds[name](temperature=0.1)
    # No padding and no ties. Scores of one list length, so that their batch is a matrix.
    lists = [([0.3, -0.2, 0.5], [1, 0, 2]), ([0.1, 0.2, 0.0], [2, 1, 0])]
    labels = tf.constant([grades for _, grades in lists], tf.float32)
    scores = tf.constant([scores for scores, _ in lists])
    ours = LOSSES[name]()(labels, scores).numpy()
    assert ours == pytest.approx(theirs(labels, scores).numpy(), rel=1e-5)


# ---- hazards ------------------------------------------------------------------------------------


@every_loss
def test_padding_does_not_change_the_loss_of_a_list(name):
    # tensorflow/ranking#359: there, padding enters the divisor and the hinge loss halves.
    alone = np.concatenate([each(name, [one]) for one in LISTS])
    long = (np.linspace(-0.9, 0.9, 70).tolist(), [2, 1] + [0] * 68)
    beside = each(name, [*LISTS, long])
    np.testing.assert_allclose(beside[:-1], alone, rtol=1e-5, atol=1e-6)


@every_loss
@pytest.mark.parametrize("temperature", [0.1, 0.01])
def test_padding_has_no_weight_beside_the_lowest_scores(name, temperature):
    # -1 / 0.01 lies far below log(1e-10), the score that tensorflow-ranking gives to padding.
    low = ([-0.99, -0.9, -0.95], [0, 1, 2])
    loss = LOSSES[name](temperature=temperature)
    value, gradient = value_and_gradient(loss, [low])
    beside, beside_gradient = value_and_gradient(loss, [low, ([0.0] * 40, [0] * 40)])
    other = of_flat(loss, *batch([([0.0] * 40, [0] * 40)])).numpy()
    assert beside == pytest.approx((value + other) / 2, rel=1e-5)
    np.testing.assert_allclose(beside_gradient[:3], gradient / 2, rtol=1e-4, atol=1e-6)


@every_loss
def test_other_lists_of_the_batch_change_nothing(name):
    loss = LOSSES[name]()
    _, alone = value_and_gradient(loss, LISTS[:1])
    for others in (LISTS[1:], [NOTHING_RELEVANT], [ALL_EQUAL] * 3):
        _, beside = value_and_gradient(loss, [*LISTS[:1], *others])
        share = 1 / (1 + len(others))
        np.testing.assert_allclose(beside[:5], alone * share, rtol=1e-4, atol=1e-6)


@every_loss
def test_order_of_the_documents_changes_nothing(name):
    loss = LOSSES[name]()
    value, gradient = value_and_gradient(loss, LISTS[:1])
    scores, grades = LISTS[0]
    backwards, other = value_and_gradient(loss, [(scores[::-1], grades[::-1])])
    assert backwards == pytest.approx(value, rel=1e-6)
    untied = [1, 2, 4]  # equal scores may share their gradient in any way
    np.testing.assert_allclose(other[::-1][untied], gradient[untied], rtol=1e-4, atol=1e-6)


@every_loss
def test_list_without_a_relevant_document_is_finite(name):
    value, gradient = value_and_gradient(LOSSES[name](), [NOTHING_RELEVANT])
    assert np.isfinite(value)
    if name == "list_mle":  # draws equal grades together
        assert gradient[0] < 0 or gradient[1] < 0 < gradient[2]
    else:
        assert value == 0
        np.testing.assert_array_equal(gradient, [0, 0, 0])


@every_loss
def test_all_equal_grades_are_finite(name):
    value, gradient = value_and_gradient(LOSSES[name](), [ALL_EQUAL])
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
    if name.startswith("pairwise"):
        assert value == 0
        np.testing.assert_array_equal(gradient, [0, 0, 0])


@every_loss
@pytest.mark.parametrize("grade", [0, 2])
def test_list_of_one_document_has_no_gradient(name, grade):
    value, gradient = value_and_gradient(LOSSES[name](), [([0.4], [grade])])
    assert value == (-1 if name == "approx_ndcg" and grade else 0)  # the perfect order
    np.testing.assert_array_equal(gradient, [0])


@every_loss
def test_equal_scores_have_finite_gradients_that_lift_the_relevant(name):
    # tensorflow-ranking's pairwise logistic loss has gradient 0 here.
    value, gradient = value_and_gradient(LOSSES[name](), [([0.0] * 4, [0, 2, 0, 0])])
    assert np.isfinite(value)
    assert np.argmin(gradient) == 1
    assert gradient[1] < 0


@every_loss
def test_extreme_scores_have_finite_gradients(name):
    # The widest range at a small temperature: a plain exp would underflow to log(0).
    lists = [([1.0, -1.0, 0.5, 1.0], [0, 2, 1, 0]), ([-1.0, 1.0], [0, 2])]
    value, gradient = value_and_gradient(LOSSES[name](temperature=0.005), lists)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@every_loss
def test_list_without_documents_is_zero_and_does_not_count(name):
    lists = [([], []), LISTS[0]]
    expected = by_hand(name, LISTS[:1], 0.1)[0]
    assert each(name, lists) == pytest.approx([0, expected], rel=1e-5)
    assert of_flat(LOSSES[name](), *batch(lists)).numpy() == pytest.approx(expected, rel=1e-5)


@every_loss
@pytest.mark.parametrize("in_graph", [False, True])
def test_nothing_is_random_for_exact_continuation(name, in_graph):
    # tensorflow-ranking's ListMLE orders ties by a random number of each call.
    loss = LOSSES[name]()
    run = tf.function(of_flat) if in_graph else of_flat
    lists = batch([*LISTS, NOTHING_RELEVANT])
    assert len({run(loss, *lists).numpy() for _ in range(20)}) == 1


@every_loss
def test_nan_score_shows_in_the_loss(name):
    assert np.isnan(LOSSES[name]()([[0, 2, 1]], [[0.1, math.nan, 0.3]]))


# ---- ties in ListMLE ----------------------------------------------------------------------------


def test_list_mle_of_equal_grades_is_least_at_equal_scores():
    loss = ListMLELoss(temperature=1.0)
    equal = loss([[1, 1, 1]], [[0.0, 0.0, 0.0]]).numpy()
    assert equal == pytest.approx(math.log(3 * 2 * 1))
    for scores in ([0.1, 0.0, -0.1], [-0.1, 0.1, 0.0], [0.3, 0.0, 0.0]):
        assert loss([[1, 1, 1]], [scores]).numpy() > equal


# ---- graphs and arguments -----------------------------------------------------------------------


@every_loss
def test_one_graph_takes_every_batch(name):
    loss = LOSSES[name]()
    specs = [tf.TensorSpec([None], kind) for kind in (tf.float32, tf.int32, tf.int32)]
    run = tf.function(lambda *lists: of_flat(loss, *lists), input_signature=specs)
    for lists in (LISTS, LISTS[:1], [ALL_EQUAL]):
        expected = of_flat(loss, *batch(lists)).numpy()
        assert run(*batch(lists)).numpy() == pytest.approx(expected, rel=1e-5)


@every_loss
def test_lower_temperature_is_the_same_as_wider_scores(name):
    wide = [([10 * s for s in scores], grades) for scores, grades in LISTS]
    narrow, _ = value_and_gradient(LOSSES[name](temperature=0.1), LISTS)
    expected, _ = value_and_gradient(LOSSES[name](temperature=1.0), wide)
    assert narrow == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("shape", [(3,), (2, 3, 1), ()])
def test_scores_that_are_no_lists_are_refused(shape):
    with pytest.raises(ValueError, match=r"y_pred has shape .*SoftmaxLoss .*\[lists, list_size\]"):
        SoftmaxLoss()(np.zeros(shape), np.zeros(shape))


def test_flat_batch_without_lists_is_refused():
    with pytest.raises(ValueError, match=r"SoftmaxLoss .* no list_lengths: give .*candidate lists"):
        SoftmaxLoss().laid_out(tf.constant([0, 2]), tf.constant([0.1, 0.2]), None)


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan, math.inf, "hot"])
def test_temperature_that_cannot_be_used_is_named(temperature):
    with pytest.raises(ValueError, match=r"^temperature must be finite and above 0, got "):
        SoftmaxLoss(temperature)
