"""Bases of all losses: shapes, padding, weights, reduction, and how a model feeds them.

Every loss is a `RankingLoss`, which is a Keras loss. There are two kinds: an `OrdinalLoss` scores
each document against its own grade, a `ListwiseLoss` compares the documents of one candidate list.
A loss is one class; its `call` is the formula and does not depend on how batches are made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import tensorflow as tf
from tensorflow import keras

from tf_smoothclir._compat.keras_api import share_of_replica
from tf_smoothclir.losses.grades import predicted_grades

REDUCTIONS = ("sum_over_batch_size", "sum", "none")

register = keras.utils.register_keras_serializable(package="tf_smoothclir")


class RankingLoss(keras.losses.Loss):
    """A loss of scores against relevance grades, for `model.compile` or to be called.

    A negative label, -1 by custom, is padding. Padding changes neither value nor gradient, whatever
    score (even NaN) or weight stands there. A batch of padding alone has loss 0 and gradient 0.
    Half-precision scores are computed in float32.

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
    def from_settings(cls, settings: Mapping[str, Any]) -> RankingLoss:
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
                `OrdinalLoss`. Axes may have length 1 instead, or one such axis more.
        """
        with tf.name_scope(self.name or type(self).__name__):
            scores = tf.convert_to_tensor(y_pred)
            if scores.dtype.size < 4:
                scores = tf.cast(scores, tf.float32)
            labels = _shaped_like(scores, tf.convert_to_tensor(y_true))
            losses, padding = self.masked_losses(labels, scores)
            if sample_weight is not None:
                losses *= _broadcast_weights(sample_weight, losses)
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
        del list_lengths
        return grades, scores

    def rescaled_in_batch(self, loss: tf.Tensor, scores: tf.Tensor, list_lengths) -> tf.Tensor:
        """Returns the loss of a batch with in-batch negatives, divided as suits this loss.

        A loss of single scores is divided by the number of listed pairs: the other pairs add to the
        loss, but do not make the gradients of the listed pairs smaller.

        Args:
            loss: Mean over all scores.
            scores: `[queries, documents]`.
            list_lengths: `[queries]` int, how many of the documents are in the list of each query.
        """
        queries, documents = tf.unstack(tf.shape(scores))
        listed = tf.cast(tf.reduce_sum(list_lengths), loss.dtype)
        return loss * tf.cast(queries * documents, loss.dtype) / listed

    def num_terms(self, pairs: tf.Tensor, list_lengths: tf.Tensor | None) -> tf.Tensor:
        """Returns the divisor of the mean loss of a batch: its weight in a joint mean.

        Args:
            pairs: How many pairs the lists of the batch hold, an int scalar.
            list_lengths: As for `laid_out`; no list is empty.
        """
        del list_lengths
        return pairs

    def get_config(self) -> dict[str, Any]:
        """Returns the arguments of the constructor."""
        return {"reduction": self.reduction, "name": self.name}


def ranking_loss(loss: Any) -> RankingLoss:
    """Returns the `RankingLoss` that lays out batches for a compiled model's loss.

    That is the loss itself. For any other loss that Keras takes, such as "mse", it is a plain
    `RankingLoss`, which passes on the scores one by one.
    """
    return loss if isinstance(loss, RankingLoss) else RankingLoss()


def _shaped_like(scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """The labels in the shape of the scores, which may differ in a trailing 1 only."""
    want, have = scores.shape, labels.shape
    if want.rank is not None and have.rank is not None:
        shorter, longer = sorted((want, have), key=len)
        if not longer.is_compatible_with(shorter.concatenate([1] * (len(longer) > len(shorter)))):
            raise ValueError(
                f"y_true has shape {have} and y_pred {want}: give one label for each score"
            )
    # Nothing broadcasts either where the shapes are known only at run time.
    return tf.reshape(labels, tf.shape(scores))


def _broadcast_weights(weights: Any, losses: tf.Tensor) -> tf.Tensor:
    """The weights in the shape of the losses, of which they may have the leading axes."""
    weights = tf.cast(weights, losses.dtype)
    want, have = losses.shape, weights.shape
    if want.rank is not None and have.rank is not None:
        if have.rank == want.rank + 1 and have[-1] == 1:
            weights = weights[..., 0]
        weights = weights[(..., *[tf.newaxis] * (want.rank - weights.shape.rank))]
        if not _can_broadcast(weights.shape, want):
            raise ValueError(
                f"sample_weight has shape {have} and there are losses of shape {want}: give one "
                "weight for all, one for each loss (a list is one loss for a list loss), or one "
                "for each row of losses"
            )
    return tf.broadcast_to(weights, tf.shape(losses))


def _can_broadcast(shape: Sequence, target: tf.TensorShape) -> bool:
    if len(shape) != len(target):
        return False
    return tf.TensorShape([n if w == 1 else w for w, n in zip(shape, target)]).is_compatible_with(
        target
    )
