"""Explanations: shares are slopes, and with the remainder they sum up to the score."""

import math

import numpy as np
import pytest
import tensorflow as tf

from tf_smoothclir.encoder.encoder import TokenVectors
from tf_smoothclir.protocols.text_search import Explanation, WordShare
from tf_smoothclir.search.explanation import SavedTower, explain
from tf_smoothclir.utils.errors import InputError

DIM = 6


def example(words=7, scale=1.0, epsilon=0.5):
    """A text with `words` words, and a smooth-normalised vector of the other side."""
    generator = np.random.default_rng(0)
    vectors, other = scale * generator.normal(size=(words, DIM)), generator.normal(size=DIM)
    words = [f"w{n}" for n in range(words)]
    return TokenVectors(words, vectors), other / (np.linalg.norm(other) + epsilon)


def shares_of(explanation):
    return {word.word: word.share for word in explanation.words}


@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.25, 1.0])
def test_shares_and_remainder_sum_up_to_the_score(scale, epsilon):
    text, other = example(scale=scale, epsilon=epsilon)
    found = explain(text, other, epsilon)
    total = math.fsum([*shares_of(found).values(), found.remainder])
    assert total == pytest.approx(found.score, abs=1e-15)
    pooled = np.tanh(text.vectors.mean(axis=0))
    expected = pooled @ other / (np.linalg.norm(pooled) + epsilon)
    assert found.score == pytest.approx(expected, abs=1e-14)


def test_share_is_the_slope_by_finite_differences():
    # Of the numerator, when the word is moved in or out of the mean; the length is held.
    text, other = example(scale=1.5)
    mean, step = text.vectors.mean(axis=0), 1e-6
    length = np.linalg.norm(np.tanh(mean)) + 0.5
    shares = shares_of(explain(text, other, 0.5))
    for word in range(7):
        moved = [np.tanh(mean + sign * step * text.vectors[word] / 7) @ other for sign in (1, -1)]
        slope = (moved[0] - moved[1]) / (2 * step) / length
        assert shares[f"w{word}"] == pytest.approx(slope, rel=1e-6)


def test_each_word_stands_once_with_all_its_occurrences_largest_first():
    text, other = example(words=3)
    again = TokenVectors(["w0", "w1", "w2", "w0", "w1", "w0"], text.vectors[[0, 1, 2, 0, 1, 0]])
    found = explain(again, other, 0.5)
    names = [f"{word}-{n}" for n, word in enumerate(again.words)]
    apart = shares_of(explain(again._replace(words=names), other, 0.5))
    expected = {w: sum(v for k, v in apart.items() if k.startswith(w)) for w in ("w0", "w1", "w2")}
    assert shares_of(found) == pytest.approx(expected)
    values = [word.share for word in found.words]
    assert values == sorted(values, reverse=True)


@pytest.mark.parametrize("epsilon", [0.0, 1.0])
def test_without_a_word_or_of_length_0_there_is_no_share(epsilon):
    other = np.ones(DIM) / 4
    no_word = TokenVectors([], np.zeros((0, DIM)))
    assert explain(no_word, other, epsilon) == Explanation(0.0, (), 0.0)
    found = explain(TokenVectors(["a"], np.zeros((1, DIM))), other, epsilon)
    assert found == Explanation(0.0, (WordShare("a", 0.0),), 0.0)


def test_a_tower_must_know_words():
    with pytest.raises(InputError, match="only average pooling can"):
        SavedTower(tf.Module(), 0.5).token_vectors(["an apple"])
