"""The losses of S2Net and of the autoencoder, by hand."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.papers.li2018.bae import correlation, first_texts, merged_bags
from tf_smoothclir.papers.li2018.s2net import s2net_loss
from tf_smoothclir.text.tokens import Tokens


def test_s2net_by_hand():
    """Own cosines 0.9 and 0.5; a query meets the other document, a document the other query."""
    similarities = tf.constant([[0.9, 0.2], [0.4, 0.5]])
    margins = [0.9 - 0.2, 0.5 - 0.4, 0.9 - 0.4, 0.5 - 0.2]
    expected = sum(math.log1p(math.exp(-10 * margin)) for margin in margins) / 4
    assert float(s2net_loss(similarities, 10.0)) == pytest.approx(expected)


def test_s2net_of_one_pair_is_0_with_gradient_0():
    single = tf.constant([[0.3]])
    with tf.GradientTape() as tape:
        tape.watch(single)
        loss = s2net_loss(single, 10.0)
    assert (float(loss), float(tape.gradient(loss, single)[0, 0])) == (0, 0)


def test_bags_are_binary_and_merged_without_unknown_words():
    tokens = Tokens.of(tf.constant([2, 2, 4, 1, 3, 9, 4]), tf.constant([3, 0, 2, 2]))
    found = merged_bags(tokens, 5, merged=2)
    np.testing.assert_array_equal(found, [[0, 0, 1, 0, 1], [0, 0, 0, 1, 1]])
    odd = merged_bags(first_texts(tokens, tf.constant(3)), 5, merged=2)
    np.testing.assert_array_equal(odd, [[0, 0, 1, 0, 1], [0, 0, 0, 1, 0]])


def test_correlation_is_that_of_numpy_and_0_for_constants():
    one, other = np.random.default_rng(0).normal(size=(2, 7, 3)).astype(np.float32)
    expected = sum(np.corrcoef(one[:, k], other[:, k])[0, 1] for k in range(3))
    assert float(correlation(tf.constant(one), tf.constant(other))) == pytest.approx(
        expected, rel=1e-4
    )
    assert float(correlation(tf.ones([4, 3]), tf.constant(other[:4]))) == 0
