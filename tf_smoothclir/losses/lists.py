"""Losses over whole candidate lists, for `--batching=lists`: what counts is the order in a list.

Where an `OrdinalLoss` wants each score in the segment of its grade, these compare the scores of one
list with each other, so thresholds mean nothing to them. Batches are flat, one list after the
other. Four are tensorflow-ranking's, through `_compat`, but for its reduction, which divides by
padding too. ListMLE is our own: theirs (0.5.5) orders ties at random, lets padding add to the value
and underflows at small temperatures.
"""

from __future__ import annotations

import math

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.lists import list_losses

LIST_LOSSES = ("softmax", "approx_ndcg", "pairwise_hinge", "pairwise_logistic", "list_mle")


@keras.utils.register_keras_serializable(package="tf_smoothclir")
class ListLoss:
    """A loss of candidate lists, with scores s = r / T for similarities r in [-1, 1]:

        softmax            -Σ_i g_i log(exp(s_i) / Σ_j exp(s_j))                (Cao et al. 2007)
        approx_ndcg        -ApproxNDCG, gain 2^g - 1, ranks 1/2 + Σ_j σ(s_j - s_i) (Qin et al. 2010)
        pairwise_hinge     mean of max(0, 1 - (s_i - s_j)) over pairs g_i > g_j  (Joachims 2002)
        pairwise_logistic  mean of log(1 + exp(s_j - s_i)) over the same pairs  (Burges et al. 2005)
        list_mle           -log likelihood (Plackett-Luce) of the order by grade   (Xia et al. 2008)

    The loss of a batch is the mean over its lists. Padding, the other lists of the batch and the
    order of the documents do not change the loss of a list, and nothing is random. The gradient is
    0 for a list of one document, for the pairwise losses without a pair of different grades (the
    loss is 0 then), and for softmax and ApproxNDCG without a grade above 0 (the same).

    ListMLE needs an order of documents with equal grades: the least likely one, lowest score first.
    This is convex in the scores, and is least where equal grades have equal scores.

    Args:
        name: One of `LIST_LOSSES`.
        temperature: T > 0 in units of the similarity. Similarities lie in (-1, 1), where a softmax
            is nearly flat; with 0.1, the default, the hinge loss wants a margin of 0.1.

    Raises:
        ValueError: No such loss, or a temperature that is not finite and above 0.
    """

    def __init__(self, name: str, temperature: float = 0.1):
        if name not in LIST_LOSSES:
            raise ValueError(f"list loss must be one of {', '.join(LIST_LOSSES)}, got {name!r}")
        if not (math.isfinite(temperature) and temperature > 0):
            raise ValueError(
                f"temperature must be finite and above 0, got {temperature!r}: use 0.1"
            )
        self.name = name
        self.temperature = float(temperature)

    def __call__(self, scores, grades, list_lengths) -> tf.Tensor:
        """Returns the loss of a batch, a float32 scalar.

        Args:
            scores: `[pairs]` float, the similarities of all lists, one list after the other.
            grades: `[pairs]` int or float, at least 0.
            list_lengths: `[lists]` int, at least one, which add up to the number of pairs.
        """
        return tf.reduce_mean(self.per_list(scores, grades, list_lengths))

    def per_list(self, scores, grades, list_lengths) -> tf.Tensor:
        """Returns the loss of each list, `[lists]` float32; arguments as for calling."""
        scores = tf.cast(scores, tf.float32) / self.temperature
        labels = _padded(tf.cast(grades, tf.float32), list_lengths, -1.0)
        scores = _padded(scores, list_lengths, 0.0)
        scores = _from_zero(scores, labels >= 0)
        if self.name == "list_mle":
            return _list_mle(labels, scores)
        return list_losses(self.name, labels, scores)

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {"name": self.name, "temperature": self.temperature}

    @classmethod
    def from_config(cls, config: dict) -> ListLoss:
        """Restores a loss from `get_config`."""
        return cls(**config)


def _padded(values: tf.Tensor, list_lengths: tf.Tensor, padding: float) -> tf.Tensor:
    """Returns `[lists, longest]`, the values of each list and then padding."""
    real = tf.sequence_mask(list_lengths)
    empty = tf.fill(tf.shape(real), tf.constant(padding, values.dtype))
    return tf.tensor_scatter_nd_update(empty, tf.where(real), values)


def _from_zero(scores: tf.Tensor, real: tf.Tensor) -> tf.Tensor:
    """Moves the lowest real score of each list to 0, which changes no loss.

    tensorflow-ranking gives padding the score log(1e-10), not minus infinity: below every real
    score it has no weight.
    """
    lowest = tf.reduce_min(tf.where(real, scores, scores.dtype.max), axis=1, keepdims=True)
    return tf.where(real, scores - tf.stop_gradient(lowest), tf.zeros_like(scores))


def _list_mle(labels: tf.Tensor, scores: tf.Tensor) -> tf.Tensor:
    """Returns minus the log-likelihood of each list's order by grade, `[lists]`."""
    grade, other_grade = labels[:, :, tf.newaxis], labels[:, tf.newaxis]
    score, other_score = scores[:, :, tf.newaxis], scores[:, tf.newaxis]
    place = tf.range(tf.shape(scores)[1])
    tied = (other_score == score) & (place >= place[:, tf.newaxis])
    # Which documents are left to draw from when it is the turn of each.
    left = (other_grade < grade) | ((other_grade == grade) & ((other_score > score) | tied))
    left &= other_grade >= 0
    odds = tf.reduce_logsumexp(tf.where(left, other_score, scores.dtype.min), axis=2)
    return tf.reduce_sum(tf.where(labels >= 0, odds - scores, 0.0), axis=1)
