"""The losses of the adversarial model, by hand and by the relations between them."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.papers.li2018 import constraints
from tf_smoothclir.papers.li2018.discriminator import Discriminator


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
    ("grades", "preferred"), [((2, 0), 1.0), ((1, 0), 1.0), ((2, 1), 2 / 3)], ids=str
)
@pytest.mark.parametrize(("margin", "beta"), [(0.3, 1.0), (-0.2, 10.0)])
def test_matching_by_hand(grades, preferred, margin, beta):
    """CE[P, σ(β Δ)]; with P = 1 the loss of DSSM with one negative and of S2Net, -log σ(β Δ)."""
    found = constraints.preferences(tf.constant([grades]))
    assert float(found[0]) == pytest.approx(preferred)
    sure = 1 / (1 + math.exp(-beta * margin))
    expected = -preferred * math.log(sure) - (1 - preferred) * math.log(1 - sure)
    loss = constraints.matching_loss(found, tf.constant([margin]), beta)
    assert float(loss) == pytest.approx(expected, rel=1e-5)


def test_translation_likelihood_and_accuracies_by_hand():
    queries, translations = tf.constant([[1.0, 2.0], [0.0, 0.0]]), tf.constant([[0.0, 0.0]] * 2)
    assert constraints.translation_loss(queries, translations) == (1 + 4) / 2
    # Each source counts alike, however many texts it has.
    logits = [tf.constant([[math.log(2), 0.0, 0.0]] * n) for n in (1, 1, 7)]
    shares = (2 / 4, 1 / 4, 1 / 4)  # of the source that each list is from
    expected = sum(map(math.log, shares)) / 3
    assert float(constraints.source_log_likelihood(logits)) == pytest.approx(expected)
    first, last = [9.0, 0.0, 0.0], [0.0, 0.0, 9.0]
    logits = [tf.constant(rows) for rows in ([first, last], [first], [last, last, first, first])]
    found = [float(share) for share in constraints.source_accuracies(logits)]
    assert found == [0.5, 0.0, 0.5]


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


def test_norms_have_slopes_of_length_1_and_none_at_0():
    matrices = [tf.Variable([[3.0, 0.0], [0.0, 4.0]]), tf.Variable(tf.zeros([2, 2]))]
    with tf.GradientTape() as tape:
        value = constraints.norms(matrices)
    assert value == 5
    first, second = tape.gradient(value, matrices)
    np.testing.assert_allclose(first, [[0.6, 0], [0, 0.8]], rtol=1e-6)
    np.testing.assert_array_equal(second, np.zeros([2, 2]))
    assert constraints.norms([]) == 0


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
    assert constraints.confusion_loss([trained(of) for of in sources()]) > math.log(3)
