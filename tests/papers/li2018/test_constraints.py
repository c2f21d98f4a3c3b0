"""The losses of the adversarial model, by hand and by the relations between them."""

import math

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from tf_smoothclir.papers.li2018 import constraints
from tf_smoothclir.papers.li2018.discriminator import SOURCES, Discriminator
from tf_smoothclir.two_tower.similarity import smooth_normalize

finite = st.floats(-1, 1, width=32)


def vectors(seed, number=6, dim=4):
    return tf.constant(np.random.default_rng(seed).normal(size=(number, dim)), tf.float32)


def sources(seed=0):
    return [vectors(seed + n, number) for n, number in enumerate((3, 3, 6))]


@pytest.fixture
def trained():
    """A discriminator that does not find all sources alike."""
    layer = Discriminator(4, seed=1)
    layer.build()
    for number, weight in enumerate(layer.trainable_weights):
        weight.assign(np.random.default_rng(number).normal(0, 0.5, weight.shape))
    return layer


def likelihood(layer, texts):
    return constraints.source_log_likelihood([layer(of) for of in texts])


@pytest.mark.parametrize(
    ("grades", "expected"), [((2, 0), 1.0), ((1, 0), 1.0), ((2, 1), 2 / 3)], ids=str
)
def test_preferences_of_grades(grades, expected):
    assert float(constraints.preferences(tf.constant([grades]))[0]) == pytest.approx(expected)


@settings(deadline=None)
@given(st.tuples(finite, finite), st.sampled_from([1.0, 10.0]))
def test_matching_with_certainty_is_a_softmax_over_two_documents(scores, beta):
    """The loss of DSSM with one negative and of S2Net: -log σ(β Δ)."""
    better, worse = scores
    found = float(constraints.matching_loss(tf.ones([1]), tf.constant([better - worse]), beta))
    softmax = math.exp(beta * better) / (math.exp(beta * better) + math.exp(beta * worse))
    assert found == pytest.approx(-math.log(softmax), rel=1e-3, abs=1e-5)


def test_matching_of_unsure_pairs_is_least_where_the_model_is_as_unsure():
    """CE[2/3, p] is least at p = 2/3, where β Δ = log 2."""
    preferred = tf.fill([1], 2 / 3)
    at = {
        margin: float(constraints.matching_loss(preferred, tf.constant([margin]), 10.0))
        for margin in (0.0, math.log(2) / 10, 0.2)
    }
    assert min(at, key=at.get) == math.log(2) / 10
    entropy = -(2 / 3) * math.log(2 / 3) - (1 / 3) * math.log(1 / 3)
    assert min(at.values()) == pytest.approx(entropy, rel=1e-6)


def test_translation_loss_by_hand():
    queries, translations = tf.constant([[1.0, 2.0], [0.0, 0.0]]), tf.constant([[0.0, 0.0]] * 2)
    assert constraints.translation_loss(queries, translations) == (1 + 4) / 2


def test_a_new_discriminator_is_at_minus_log_3_and_moves_no_vector():
    layer = Discriminator(4)
    layer.build()
    texts = sources()
    with tf.GradientTape() as tape:
        tape.watch(texts)
        found = likelihood(layer, texts)
    assert float(found) == pytest.approx(-math.log(3))
    for gradient in tape.gradient(found, texts):
        np.testing.assert_array_equal(gradient, np.zeros(gradient.shape))


def test_each_source_counts_alike_however_many_texts_it_has():
    logits = [tf.constant([[math.log(2), 0.0, 0.0]] * n) for n in (1, 1, 7)]
    shares = (2 / 4, 1 / 4, 1 / 4)  # of the source that each list is from
    expected = sum(map(math.log, shares)) / 3
    assert float(constraints.source_log_likelihood(logits)) == pytest.approx(expected)


def test_accuracies_count_each_source_by_itself():
    first, last = [9.0, 0.0, 0.0], [0.0, 0.0, 9.0]
    logits = [tf.constant(rows) for rows in ([first, last], [first], [last, last, first, first])]
    found = [float(share) for share in constraints.source_accuracies(logits)]
    assert found == [0.5, 0.0, 0.5]


def test_small_steps_climb_for_the_discriminator_and_descend_for_the_vectors(trained):
    texts, before = sources(), float(likelihood(trained, sources()))
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(texts)
        value = likelihood(trained, texts)
    by_texts = tape.gradient(value, texts)
    by_weights = tape.gradient(value, trained.trainable_weights)
    moved = [of - 0.01 * gradient for of, gradient in zip(texts, by_texts)]
    assert likelihood(trained, moved) < before
    for weight, gradient in zip(trained.trainable_weights, by_weights):
        weight.assign(weight + 0.01 * gradient)
    assert likelihood(trained, texts) > before


def test_gradient_of_the_vectors_by_finite_differences_and_by_reversal(trained):
    """Reversing the gradient of the discriminator's own loss gives the same."""

    @tf.custom_gradient
    def reversed_gradient(value):
        return tf.identity(value), lambda upstream: -upstream

    texts = sources()
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(texts)
        value = likelihood(trained, texts)
        own_loss = -likelihood(trained, [reversed_gradient(of) for of in texts])
    found = tape.gradient(value, texts)
    for one, other in zip(found, tape.gradient(own_loss, texts)):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-8)
    step = np.zeros(texts[2].shape, np.float32)
    step[1, 2] = 1e-2
    up, down = ([texts[0], texts[1], texts[2] + sign * step] for sign in (1, -1))
    slope = (likelihood(trained, up) - likelihood(trained, down)) / 2e-2
    assert float(found[2][1, 2]) == pytest.approx(float(slope), rel=0.02, abs=1e-5)


def test_confusion_loss_is_least_where_all_sources_are_alike(trained):
    even = [tf.zeros([2, 3])] * 3
    assert float(constraints.confusion_loss(even)) == pytest.approx(math.log(3))
    uneven = [trained(of) for of in sources()]
    assert constraints.confusion_loss(uneven) > math.log(3)


def test_norms_have_slopes_of_length_1_and_none_at_0():
    matrices = [tf.Variable([[3.0, 0.0], [0.0, 4.0]]), tf.Variable(tf.zeros([2, 2]))]
    with tf.GradientTape() as tape:
        value = constraints.norms(matrices)
    assert value == 5
    first, second = tape.gradient(value, matrices)
    np.testing.assert_allclose(first, [[0.6, 0], [0, 0.8]], rtol=1e-6)
    np.testing.assert_array_equal(second, np.zeros([2, 2]))
    assert constraints.norms([]) == 0


def test_longer_vectors_change_the_translation_loss_and_what_reads_raw_vectors(trained):
    """Cosines, and so both matching losses, know nothing of lengths."""
    queries, translations, documents = sources()
    longer = 2 * translations
    assert constraints.translation_loss(queries, longer) != constraints.translation_loss(
        queries, translations
    )
    raw = likelihood(trained, [queries, longer, documents])
    assert raw != likelihood(trained, [queries, translations, documents])
    np.testing.assert_allclose(
        smooth_normalize(longer, 0.0), smooth_normalize(translations, 0.0), rtol=1e-6
    )
    assert len(SOURCES) == 3
