"""Ordinal losses: how far a similarity score lies from where its relevance grade wants it.

Every loss is an `OrdinalLoss`, whose `__call__` owns shapes, padding, weights and reduction; a
subclass states the loss of one score. Grades are 0..K-1 here and 1..K in Liu et al., "Cross-Lingual
Document Retrieval with Smooth Learning", 2020: grade g is y = g + 1 there, so that grade g has the
segment from θ_g to θ_{g+1}, with θ_0 = -1 and θ_K = 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import tensorflow as tf
from tensorflow import keras

REDUCTIONS = ("sum_over_batch_size", "sum", "none")

_register = keras.utils.register_keras_serializable(package="tf_smoothclir")


class OrdinalLoss(keras.losses.Loss):
    """A loss of scores in [-1, 1] against grades 0..K-1, for `model.compile` or to be called.

    Padding is any negative label (-1 by custom). It changes neither value nor gradient, whatever
    score, even NaN, or weight stands beside it; a batch of padding alone has loss 0 and gradient 0.
    A fractional label is rounded down. A label above K-1 makes the loss NaN, so that it shows at
    once and on every device. Half-precision scores are computed in float32.

    Args:
        reduction: "sum_over_batch_size" divides the weighted sum by the number of real labels,
            whatever their weights; "sum" does not divide; "none" returns the weighted loss of each
            score, 0 at padding.
        name: Name of the loss.

    Raises:
        ValueError: An argument cannot be used, or shapes do not fit; the message says the remedy.
    """

    def __init__(self, *, reduction: str = "sum_over_batch_size", name: str | None = None):
        if reduction not in REDUCTIONS:
            raise ValueError(f"reduction must be one of {REDUCTIONS}, got {reduction!r}")
        super().__init__(reduction=reduction, name=name)

    @property
    def num_grades(self) -> int:
        """The number of relevance grades, K."""
        raise NotImplementedError

    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each score; grades are int32 in 0..K, and K must give NaN."""
        raise NotImplementedError

    def __call__(self, y_true, y_pred, sample_weight=None) -> tf.Tensor:
        """Returns the reduced loss, float32 (float64 for float64 scores).

        Args:
            y_true: Labels, the shape of `y_pred` up to a trailing axis of length 1; int or float.
            y_pred: Scores of any shape, such as `[batch]` or `[batch, list]`.
            sample_weight: None, a scalar, or weights `[batch]`, `[batch, list]` and so on: the
                leading axes of `y_pred`, or axes of length 1 in their place.
        """
        with tf.name_scope(self.name or type(self).__name__):
            scores = tf.convert_to_tensor(y_pred)
            if scores.dtype.size < 4:
                scores = tf.cast(scores, tf.float32)
            labels = _shaped_like(scores, tf.convert_to_tensor(y_true))
            padding = labels < 0
            grades = tf.minimum(tf.cast(tf.maximum(labels, 0), tf.int32), self.num_grades)
            # Replaced before and after: a NaN score reaches neither the value nor the gradient.
            losses = self.call(grades, tf.where(padding, tf.zeros_like(scores), scores))
            if sample_weight is not None:
                losses *= _broadcastable_weights(sample_weight, scores)
            losses = tf.where(padding, tf.zeros_like(losses), losses)
            if self.reduction == "none":
                return losses
            total = tf.reduce_sum(losses)
            if self.reduction == "sum":
                return total
            real = tf.reduce_sum(tf.cast(tf.logical_not(padding), losses.dtype))
            return tf.math.divide_no_nan(total, real)

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {"reduction": self.reduction, "name": self.name}


class ThresholdLoss(OrdinalLoss):
    """An `OrdinalLoss` whose grades are the segments between thresholds.

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        **kwargs: `reduction` and `name` of `OrdinalLoss`.
    """

    def __init__(self, thresholds: Sequence[float] = (0.2, 0.7), **kwargs):
        super().__init__(**kwargs)
        self._thresholds = _check_thresholds("thresholds", thresholds)

    @property
    def thresholds(self) -> tuple[float, ...]:
        """θ_1 < ... < θ_{K-1}."""
        return self._thresholds

    @property
    def num_grades(self) -> int:
        return len(self._thresholds) + 1

    def predict_grade(self, scores) -> tf.Tensor:
        """Returns how many thresholds lie below each score: int32, the shape of `scores`.

        A score exactly on θ_y belongs to the lower grade, whose loss is zero there (eq. 2).
        """
        scores = tf.convert_to_tensor(scores)
        above = scores[..., tf.newaxis] > tf.constant(self.thresholds, scores.dtype)
        return tf.reduce_sum(tf.cast(above, tf.int32), axis=-1)

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "thresholds": list(self._thresholds)}


@_register
class SmoothOrdinalSearchLoss(ThresholdLoss):
    """Smooth Ordinal Search Loss (Liu et al., 2020, eq. 2).

        SOSL(r, y) = (r - θ_y)² where r > θ_y, (θ_{y-1} - r)² where r < θ_{y-1}, else 0

    Zero inside the right segment. For r in [-1, 1] the gradient is bounded by 4, and the loss is
    2-smooth in r (Proposition 1).
    """

    def call(self, y_true, y_pred):
        edges = (-1.0, *self.thresholds, 1.0)
        return squared_excess(y_true, y_pred, edges[:-1], edges[1:])


@_register
class SegmentMeanSquaredError(ThresholdLoss):
    """Squared distance to the middle of the grade's segment.

        MSE(r, y) = (r - (θ_{y-1} + θ_y) / 2)²

    The "MSE" of Liu et al., 2020, Table 2, which leaves its targets open: the middle of the segment
    is our choice, so that it aims at the same places as SOSL.
    """

    def call(self, y_true, y_pred):
        edges = (-1.0, *self.thresholds, 1.0)
        middles = [(low + high) / 2 for low, high in zip(edges[:-1], edges[1:])]
        return tf.square(y_pred - _by_grade(y_true, middles, y_pred.dtype))


@_register
class ProportionalOdds(ThresholdLoss):
    """Negative log-likelihood of the proportional odds model (McCullagh, 1980).

        POS(r, y) = -log(σ((θ_y - r) / T) - σ((θ_{y-1} - r) / T)),  θ_0 = -∞, θ_K = +∞

    Computed as softplus(-a) + softplus(b) - log(1 - exp(b - a)), a and b the arguments of the two
    σ, which neither cancels nor overflows. b - a depends on the grade alone.

    Args:
        thresholds: See `ThresholdLoss`.
        temperature: T > 0 in units of the score; 1 is the plain model.
        **kwargs: `reduction` and `name` of `OrdinalLoss`.
    """

    def __init__(self, thresholds=(0.2, 0.7), temperature: float = 1.0, **kwargs):
        super().__init__(thresholds, **kwargs)
        if not (_is_finite(temperature) and temperature > 0):
            raise ValueError(
                f"temperature must be finite and > 0, got {temperature!r}: 1.0 is the plain model"
            )
        self.temperature = float(temperature)

    def call(self, y_true, y_pred):
        edges = (-math.inf, *self.thresholds, math.inf)
        gaps = [(high - low) / self.temperature for low, high in zip(edges[:-1], edges[1:])]
        upper = (_by_grade(y_true, edges[1:], y_pred.dtype) - y_pred) / self.temperature
        lower = (_by_grade(y_true, edges[:-1], y_pred.dtype) - y_pred) / self.temperature
        log_gaps = _by_grade(y_true, [math.log(-math.expm1(-gap)) for gap in gaps], y_pred.dtype)
        return tf.math.softplus(-upper) + tf.math.softplus(lower) - log_gaps

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "temperature": self.temperature}


@_register
class ThreePartL2(OrdinalLoss):
    """Three-part squared hinge (Nigam et al., "Semantic Product Search", KDD 2019).

        3PartL2(r, 0) = max(0, r - c_0)²,  (r, 1) = max(0, r - c_1)²,  (r, 2) = max(0, c_2 - r)²

    Grade 0 is pushed below c_0, grade 1 below c_1, grade 2 above c_2; so K = 3.

    Args:
        cut_points: (c_0, c_1, c_2), increasing, strictly inside (-1, 1); the default is the
            authors'.
        **kwargs: `reduction` and `name` of `OrdinalLoss`.
    """

    def __init__(self, cut_points: Sequence[float] = (0.2, 0.55, 0.9), **kwargs):
        super().__init__(**kwargs)
        self.cut_points = _check_thresholds("cut_points", cut_points)
        if len(self.cut_points) != 3:
            raise ValueError(f"cut_points must be three, one for each grade, got {cut_points!r}")

    @property
    def num_grades(self) -> int:
        return 3

    def call(self, y_true, y_pred):
        low, middle, high = self.cut_points
        lower, upper = (-math.inf, -math.inf, high), (low, middle, math.inf)
        return squared_excess(y_true, y_pred, lower, upper)

    def get_config(self) -> dict:
        """Returns the arguments of the constructor."""
        return {**super().get_config(), "cut_points": list(self.cut_points)}


LOSSES = {
    "sosl": SmoothOrdinalSearchLoss,
    "mse": SegmentMeanSquaredError,
    "proportional_odds": ProportionalOdds,
    "three_part_l2": ThreePartL2,
}


def make_loss(
    name: str,
    thresholds: Sequence[float],
    *,
    temperature: float = 1.0,
    cut_points: Sequence[float] = (0.2, 0.55, 0.9),
) -> OrdinalLoss:
    """Returns the loss that `LOSSES` calls `name`.

    Args:
        name: Of the loss.
        thresholds: See `ThresholdLoss`; "three_part_l2" learns from them that K = 3, no more.
        temperature: Of "proportional_odds" alone.
        cut_points: Of "three_part_l2" alone.

    Raises:
        ValueError: No such loss, what it uses cannot be used, or "three_part_l2" with K != 3.
    """
    if name not in LOSSES:
        raise ValueError(f"loss must be one of {sorted(LOSSES)}, got {name!r}")
    if name == "proportional_odds":
        return ProportionalOdds(thresholds, temperature)
    if name != "three_part_l2":
        return LOSSES[name](thresholds)
    if len(_check_thresholds("thresholds", thresholds)) != 2:
        raise ValueError(
            f"three_part_l2 needs three grades, so two thresholds, got {thresholds!r}: give two, "
            "or use another loss"
        )
    return ThreePartL2(cut_points)


def _is_finite(value) -> bool:
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)


def _check_thresholds(argument: str, values: Sequence[float]) -> tuple[float, ...]:
    edges = (-1, *values, 1) if np.iterable(values) else ()
    ordered = all(map(_is_finite, edges)) and all(np.diff(edges) > 0)
    if len(edges) < 3 or not ordered:
        raise ValueError(
            f"{argument} must be strictly increasing numbers strictly between -1 and 1, at least "
            f"one, got {values!r}: for three grades use (0.2, 0.7), as in the paper"
        )
    return tuple(map(float, values))


def _by_grade(grades: tf.Tensor, values: Sequence[float] | tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns `values[grade]` for each grade, NaN for grade K."""
    if tf.is_tensor(values):
        return tf.gather(tf.concat([values, tf.constant([math.nan], dtype)], axis=0), grades)
    return tf.gather(tf.constant((*values, math.nan), dtype), grades)


def squared_excess(grades: tf.Tensor, scores: tf.Tensor, lower, upper) -> tf.Tensor:
    """Returns the squared distance of each score to its grade's interval.

    Args:
        grades: int32 in 0..K; K gives NaN.
        scores: The same shape.
        lower: `[K]` floats or a tensor, where the interval of each grade begins.
        upper: The same, where it ends.
    """
    above = tf.nn.relu(scores - _by_grade(grades, upper, scores.dtype))
    below = tf.nn.relu(_by_grade(grades, lower, scores.dtype) - scores)
    return tf.square(above) + tf.square(below)


def _shaped_like(scores: tf.Tensor, labels: tf.Tensor) -> tf.Tensor:
    """Returns the labels in the shape of the scores, which may differ in a trailing 1 only."""
    want, have = scores.shape, labels.shape
    if want.rank is not None and have.rank is not None:
        shorter, longer = sorted((want, have), key=len)
        if not longer.is_compatible_with(shorter.concatenate([1] * (len(longer) > len(shorter)))):
            raise ValueError(
                f"y_true has shape {have} and y_pred {want}: give one label for each score"
            )
    # Where the shapes show only at run time, this still lets nothing broadcast.
    return tf.reshape(labels, tf.shape(scores))


def _broadcastable_weights(weights, scores: tf.Tensor) -> tf.Tensor:
    """Returns the weights with axes of length 1 behind, so that they broadcast to the scores."""
    weights = tf.cast(weights, scores.dtype)
    want, have = scores.shape, weights.shape
    if want.rank is None or have.rank is None:
        return weights
    if have.rank == want.rank + 1 and have[-1] == 1:
        weights = weights[..., 0]
    for _ in range(want.rank - have.rank):
        weights = weights[..., tf.newaxis]
    lengths = tf.TensorShape([n if w == 1 else w for w, n in zip(weights.shape, want)])
    if weights.shape.rank != want.rank or not lengths.is_compatible_with(want):
        raise ValueError(
            f"sample_weight has shape {have} and y_pred {want}: give one for all, each or each row"
        )
    return weights
