"""Weights of positions: parts of a text, and the weight of a word in each.

A profile has one weight for each part of a text. Parts are short at the start and long later,
so that a few weights describe texts of any length. Sums by part come first and weights after: no
token needs a row of its own.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import tensorflow as tf

from tf_smoothclir.text.tokens import DistinctTokens, SubwordTokens, Tokens

# The position, from 0, at which each part of a text begins; the last part has no end.
PART_BEGINS = (0, 1, 2, 4, 6, 8, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 128, 160)
NUM_PARTS = len(PART_BEGINS)

AnyTokens = TypeVar("AnyTokens", Tokens, DistinctTokens, SubwordTokens)


def by_part(tokens: AnyTokens) -> AnyTokens:
    """Splits each text into `NUM_PARTS` shorter texts: its parts, in order.

    Parts after the end of a text are empty.
    """
    begins = tf.constant(PART_BEGINS, tokens.lengths.dtype)
    widths = tf.constant((*np.diff(PART_BEGINS), tokens.lengths.dtype.max), tokens.lengths.dtype)
    lengths = tf.clip_by_value(tokens.lengths[:, tf.newaxis] - begins, 0, widths)
    first = tf.gather(tf.cumsum(tokens.lengths, exclusive=True), tokens.texts)
    position = tf.range(tf.size(tokens.texts, first.dtype)) - first
    parts = tf.constant(part_of_position(PART_BEGINS[-1] + 1), tokens.texts.dtype)
    part = tf.gather(parts, tf.minimum(position, PART_BEGINS[-1]))
    return tokens._replace(lengths=tf.reshape(lengths, [-1]), texts=tokens.texts * NUM_PARTS + part)


def part_of_position(number: int) -> np.ndarray:
    """Returns `[number]` int, the part that each of the first positions belongs to."""
    return np.searchsorted(PART_BEGINS, np.arange(number), side="right") - 1


def weights_of_tokens(tokens: AnyTokens, profile: tf.Tensor) -> tf.Tensor:
    """Returns `[tokens, 1]`, the weight of each token by a profile, `[NUM_PARTS]`."""
    return tf.gather(profile, by_part(tokens).texts % NUM_PARTS)[:, tf.newaxis]


def profile_means(sums: tf.Tensor, weights: tf.Tensor, profile: tf.Tensor) -> tf.Tensor:
    """Returns the means of texts, `[texts, dim]`, given the sums over their parts.

    Args:
        sums: `[texts * NUM_PARTS, dim]`, of weighted word vectors.
        weights: `[texts * NUM_PARTS, 1]`, of the weights of these words.
        profile: `[NUM_PARTS]`, a factor on the weights in each part.
    """
    weights = tf.reshape(weights, [-1, NUM_PARTS])
    totals = tf.linalg.matvec(weights, profile)[:, tf.newaxis]
    shares = tf.math.divide_no_nan(profile, totals)  # an empty text is the zero vector
    sums = tf.reshape(sums, [-1, NUM_PARTS, sums.shape[-1]])
    return tf.matmul(shares[:, tf.newaxis], sums)[:, 0]
