"""Bases of all losses: shapes, padding, weights, reduction, and how a model feeds them.

Every loss is a `RankingLoss`, which is a Keras loss. There are two kinds: an `OrdinalLoss` scores
each document against its own grade, a `ListwiseLoss` compares the documents of one candidate list.
A loss is one class; its `call` is the formula and does not depend on how batches are made.
"""

import abc
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import share_of_replica
from tf_smoothclir.losses.labels import (
    broadcast_weights,
    given_labels,
    keras_mask,
    predicted_grades,
    weights_of_lists,
)
from tf_smoothclir.settings.given import given_object

REDUCTIONS = ("sum_over_batch_size", "sum", "none")

register = keras.utils.register_keras_serializable(package="tf_smoothclir")


class RankingLoss(keras.losses.Loss):
    """A loss of scores against relevance grades, for `model.compile` or to be called.

    A negative label, -1 by custom, is padding, and so is what Keras's mask of the scores leaves
    out. Padding changes neither value nor gradient, whatever score (even NaN) or weight stands
    there. A batch of padding alone has loss 0 and gradient 0. Half-precision scores are computed in
    float32.

    Args:
        reduction: "sum_over_batch_size" divides the weighted sum by the number of losses that are
            not of padding, whatever their weights; "sum" does not divide; "none" returns each
            weighted loss, 0 at padding.
        name: Name of the loss.

    Raises:
        ValueError: An argument cannot be used, or shapes do not fit; the message says the remedy.

    Attributes:
        settings: The constructor's arguments that a training run sets by flags of the same names.
        needs_lists: Whether a batch must hold whole candidate lists.
        layer: Layer with the trainable weights of the loss, None where it has none.
    """

    settings: ClassVar[tuple[str, ...]] = ()
    needs_lists: ClassVar[bool] = False
    layer: keras.layers.Layer | None = None

    def __init__(self, *, reduction: str = "sum_over_batch_size", name: str | None = None):
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {REDUCTIONS}, got {reduction!r}")
        super().__init__(reduction=reduction, name=name)

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Returns the loss with the values that a training run's settings have for it.

        Args:
            settings: By name, at least those that `RankingLoss.settings` declares.

        Raises:
            ValueError: A value cannot be used; the message names it.
        """
        return cls(**{name: settings[name] for name in cls.settings})

    # ---- grades ---------------------------------------------------------------------------------

    @property
    def num_grades(self) -> int | None:
        """The number of relevance grades, K; None where the loss takes any number."""
        return None

    @property
    def thresholds(self) -> tuple[float, ...] | None:
        """θ_1 < ... < θ_{K-1}, the scores at which the grade changes; None where it has none."""
        return None

    def predict_grade(self, scores) -> tf.Tensor:
        """Returns `predicted_grades` by the thresholds: int32, the shape of `scores`.

        Raises:
            ValueError: The loss has no thresholds.
        """
        if self.thresholds is None:
            raise ValueError(
                f"{type(self).__name__} has no thresholds, so it cannot predict grades: use a loss "
                "that has, such as SmoothOrdinalSearchLoss"
            )
        return predicted_grades(scores, self.thresholds)

    # ---- value ----------------------------------------------------------------------------------

    @abc.abstractmethod
    def masked_losses(self, labels: tf.Tensor, scores: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the unreduced losses, and which of them are padding: bool of the same shape.

        Args:
            labels: The shape of `scores`; negative at padding.
            scores: At least float32; any value, even NaN, at padding.
        """
        raise NotImplementedError

    def __call__(self, y_true, y_pred, sample_weight=None) -> tf.Tensor:
        """Returns the reduced loss, a scalar, or with reduction "none" each loss.

        Args:
            y_true: Labels, the shape of `y_pred` up to a trailing axis of length 1; int or float.
            y_pred: Scores: `[lists, list_size]`, or any shape for an `OrdinalLoss`.
            sample_weight: None, a scalar, or weights in the shape of the unreduced losses or of
                their leading axes: `[lists]` for any loss, `[lists, list_size]` for an
                `OrdinalLoss`; for a `ListwiseLoss`, see there. Axes may have length 1 instead, or
                one such axis more.

        Raises:
            ValueError: Shapes do not fit, or the labels are no numbers.
            InvalidArgumentError: A label is NaN or infinite; of TensorFlow.
        """
        with tf.name_scope(self.name or type(self).__name__):
            labels, scores = given_labels(y_true, y_pred), tf.convert_to_tensor(y_pred)
            if scores.dtype not in (tf.float32, tf.float64):
                scores = tf.cast(scores, tf.float32)
            if sample_weight is not None and self.needs_lists:
                is_masked = keras_mask(y_pred) is not None
                labels, sample_weight = weights_of_lists(labels, sample_weight, is_masked)
            losses, padding = self.masked_losses(labels, scores)
            if sample_weight is not None:
                losses *= broadcast_weights(sample_weight, losses)
            losses = tf.where(padding, tf.zeros_like(losses), losses)
            if self.reduction == "none":
                return losses
            total = tf.reduce_sum(losses)
            if self.reduction == "sum":
                return total
            real = tf.reduce_sum(tf.cast(tf.logical_not(padding), losses.dtype))
            return share_of_replica(tf.math.divide_no_nan(total, real))

    # ---- batches of a model ---------------------------------------------------------------------

    def laid_out(
        self, grades: tf.Tensor, scores: tf.Tensor, list_lengths: tf.Tensor | None
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns a flat batch as `y_true` and `y_pred` of this loss; here it stays as it is.

        Args:
            grades: `[pairs]`, those of all lists, one list after the other.
            scores: `[pairs]` in the same order.
            list_lengths: `[lists]` int, which add up to the number of pairs; None for a batch that
                has pairs and no lists.
        """
        return grades, scores

    def num_terms(self, labels: tf.Tensor) -> tf.Tensor:
        """Returns the number of losses in a batch, padding left out: its weight in a joint mean.

        Args:
            labels: As `laid_out` returns them, or `[queries, documents]` of in-batch negatives.

        Returns:
            An int32 scalar, by which the mean loss of the batch was divided.
        """
        return tf.math.count_nonzero(labels >= 0, dtype=tf.int32)

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"reduction": self.reduction, "name": self.name}


class _KerasLoss(RankingLoss):
    """Lays out batches for a loss of Keras, which takes a row for each pair."""

    def laid_out(self, grades, scores, list_lengths):
        return tf.reshape(grades, [-1, 1]), tf.reshape(scores, [-1, 1])

    def num_terms(self, labels):
        return tf.size(labels)


def ranking_loss(loss: Any) -> RankingLoss:
    """Returns the `RankingLoss` that lays out batches for a compiled model's loss.

    That is the loss itself, or for any other loss that Keras takes, such as "mse", one that stands
    for it.
    """
    return loss if isinstance(loss, RankingLoss) else _KerasLoss()


class GivenLoss:
    """Stands for a loss object among the loss classes."""

    settings = ()
    needs_lists = False  # the object may: it says so when the model is compiled

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> keras.losses.Loss:
        """The loss object."""
        return given_object(settings["objects"], "loss")


def check_thresholds(argument: str, values: Sequence[float]) -> tuple[float, ...]:
    """Thresholds as a tuple of floats."""
    given = tuple(values) if np.iterable(values) else ()  # once: it may be an iterator
    edges = (-1, *given, 1)
    if not given or not all(map(is_finite, edges)) or not all(np.diff(edges) > 0):
        raise ValueError(
            f"{argument} must be strictly increasing numbers strictly between -1 and 1, at least "
            f"one, got {given or values!r}: for three grades use (0.2, 0.7), as in the paper"
        )
    return tuple(map(float, given))


def check_temperature(value: float, usual: float) -> float:
    """A temperature as a float."""
    if not (is_finite(value) and value > 0):
        raise ValueError(f"temperature must be finite and above 0, got {value!r}: use {usual}")
    return float(value)


def is_finite(value) -> bool:
    """Whether a value is a finite number."""
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)
