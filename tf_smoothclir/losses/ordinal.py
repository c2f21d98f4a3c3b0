"""Ordinal losses: the distance of a document's score from the interval of its grade.

Grades are 0..K-1 here and 1..K in Liu et al., "Cross-Lingual Document Retrieval with Smooth
Learning", 2020: grade g is y = g + 1 there. Grade g has the segment of scores from θ_g to θ_{g+1},
with θ_0 = -1 and θ_K = 1.
"""

import abc
import itertools
import math
from collections.abc import Sequence

import tensorflow as tf

from tf_smoothclir.losses.base import RankingLoss, check_temperature, check_thresholds, register


class OrdinalLoss(RankingLoss):
    """A loss of each score in [-1, 1] against its grade 0..K-1; scores may have any shape.

    A fractional label is rounded down. A label above K-1 makes the loss NaN, so that the mistake
    shows at once and on every device. float64 scores have a float64 loss.

    Args:
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    @property
    @abc.abstractmethod
    def num_grades(self) -> int:
        raise NotImplementedError

    @abc.abstractmethod
    def call(self, y_true: tf.Tensor, y_pred: tf.Tensor) -> tf.Tensor:
        """Returns the loss of each score.

        Args:
            y_true: Grades, int32 in 0..K in the shape of `y_pred`; K must give NaN.
            y_pred: Scores, float32 or float64 of any shape.
        """
        raise NotImplementedError

    def masked_losses(self, labels, scores):
        padding = labels < 0
        labels = tf.minimum(labels, tf.cast(self.num_grades, labels.dtype))  # or int32 overflows
        grades = tf.cast(tf.maximum(labels, 0), tf.int32)
        # Scores of padding are replaced here and their losses later: else a NaN would reach the
        # gradient although the value is masked.
        return self.call(grades, tf.where(padding, tf.zeros_like(scores), scores)), padding


class ThresholdLoss(OrdinalLoss):
    """An `OrdinalLoss` whose grades are the segments between thresholds.

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("thresholds",)

    def __init__(self, thresholds: Sequence[float] = (0.2, 0.7), **kwargs):
        super().__init__(**kwargs)
        self._thresholds = check_thresholds("thresholds", thresholds)

    @property
    def thresholds(self) -> tuple[float, ...]:
        return self._thresholds

    @property
    def edges(self) -> tuple[float, ...]:
        """Where the segments of the grades begin and end, θ_0 to θ_K."""
        return (-1.0, *self._thresholds, 1.0)

    @property
    def num_grades(self) -> int:
        return len(self._thresholds) + 1

    def get_config(self):
        return {**super().get_config(), "thresholds": list(self._thresholds)}


def by_grade(grades: tf.Tensor, values: Sequence[float] | tf.Tensor, dtype: tf.DType) -> tf.Tensor:
    """Returns `values[grade]` for each grade, NaN for grade K."""
    values = tf.convert_to_tensor(values, dtype)
    return tf.gather(tf.concat([values, tf.constant([math.nan], dtype)], axis=0), grades)


def squared_excess(grades: tf.Tensor, scores: tf.Tensor, lower, upper) -> tf.Tensor:
    """Returns the squared distance of each score to the interval of its grade.

    Args:
        grades: int32 in 0..K; K gives NaN.
        scores: The same shape.
        lower: `[K]` floats or a tensor, where the interval of each grade begins.
        upper: The same, where it ends.
    """
    above = tf.nn.relu(scores - by_grade(grades, upper, scores.dtype))
    below = tf.nn.relu(by_grade(grades, lower, scores.dtype) - scores)
    return tf.square(above) + tf.square(below)


@register
class SmoothOrdinalSearchLoss(ThresholdLoss):
    """Smooth Ordinal Search Loss (Liu et al. 2020, eq. 2).

        SOSL(r, y) = (r - θ_y)² where r > θ_y, (θ_{y-1} - r)² where r < θ_{y-1}, else 0

    Zero inside the segment of the right grade. For r in [-1, 1] the gradient is bounded by 4, and
    the loss is 2-smooth in r (Proposition 1).

        >>> loss = SmoothOrdinalSearchLoss(thresholds=(0.2, 0.7), reduction="none")
        >>> scores = [0.9, 0.5, 0.1, 0.3]  # (0.9 - 0.2)², inside [0.2, 0.7], (0.7 - 0.1)², padding
        >>> print(loss([0, 1, 2, -1], scores).numpy().round(4))
        [0.49 0.   0.36 0.  ]

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        return squared_excess(y_true, y_pred, self.edges[:-1], self.edges[1:])


@register
class SegmentMeanSquaredError(ThresholdLoss):
    """Squared distance to the middle of the grade's segment.

        MSE(r, y) = (r - (θ_{y-1} + θ_y) / 2)²

    The "MSE" of Liu et al. 2020, Table 2. The paper leaves its targets open; the authors' code aims
    at the middle of the segment, as here.

        >>> loss = SegmentMeanSquaredError(thresholds=(0.2, 0.7), reduction="none")
        >>> scores = [0.1, 0.45, 0.35, 0.0]  # (0.1 - -0.4)², the middle, (0.85 - 0.35)², padding
        >>> print(loss([0, 1, 2, -1], scores).numpy().round(4))
        [0.25 0.   0.25 0.  ]

    See `ThresholdLoss` for the arguments.
    """

    def call(self, y_true, y_pred):
        middles = [(low + high) / 2 for low, high in itertools.pairwise(self.edges)]
        return tf.square(y_pred - by_grade(y_true, middles, y_pred.dtype))


@register
class ProportionalOdds(ThresholdLoss):
    """The "PO" of Liu et al. 2020, Table 2, as their code has it.

        PO(r, y) = -log σ(θ_y - r) - log(1 - σ(θ_{y-1} - r)),  θ_0 = -1, θ_K = 1

    Two logistic losses, one at each end of the grade's segment; lowest in its middle. It is nearly
    a constant plus a multiple of `SegmentMeanSquaredError`: with the paper's thresholds, the factor
    is between 0.21 and 0.25 for all scores and grades. So the two order documents alike, and their
    rows in the paper's table nearly agree. The paper cites McCullagh (1980), whose model is
    `CumulativeLogits`.

        >>> loss = ProportionalOdds(thresholds=(0.2, 0.7), reduction="none")
        >>> scores = [0.2, 0.45, 0.7, 0.0]  # an end is -log(1/2); the middle is 2 log(1 + e^-1/4)
        >>> print(loss([0, 1, 2, -1], scores).numpy().round(4))
        [0.9564 1.1519 1.2475 0.    ]

    See `ThresholdLoss` for the arguments.
    """

    def call(self, y_true, y_pred):
        above = y_pred - by_grade(y_true, self.edges[1:], y_pred.dtype)
        below = by_grade(y_true, self.edges[:-1], y_pred.dtype) - y_pred
        return tf.math.softplus(above) + tf.math.softplus(below)


@register
class CumulativeLogits(ThresholdLoss):
    """Negative log-likelihood of the model of cumulative logits (McCullagh 1980).

        L(r, y) = -log(σ((θ_y - r) / T) - σ((θ_{y-1} - r) / T)),  θ_0 = -∞, θ_K = +∞

    McCullagh, "Regression Models for Ordinal Data", Journal of the Royal Statistical Society B 42,
    calls it the proportional odds model. The loss of that name in Liu et al. 2020 is another one:
    `ProportionalOdds`. Scores between -1 and 1 are too narrow for this one: it needs T below 1.

    Computed as softplus(-a) + softplus(b) - log(1 - exp(b - a)), where a and b are the arguments of
    the two σ. This neither cancels nor overflows, and b - a depends on the grade alone.

        >>> loss = CumulativeLogits(thresholds=(0.2, 0.7), reduction="none")
        >>> scores = [0.2, 0.45, 0.7, 0.0]  # -log(1/2), -log(σ(1/4) - σ(-1/4)), -log(1/2), padding
        >>> print(loss([0, 1, 2, -1], scores).numpy().round(4))
        [0.6931 2.0846 0.6931 0.    ]

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        temperature: T > 0 in units of the score; 1 is the plain model.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("thresholds", "temperature")

    def __init__(self, thresholds=(0.2, 0.7), temperature: float = 1.0, **kwargs):
        super().__init__(thresholds, **kwargs)
        self.temperature = check_temperature(temperature, usual=1.0)

    def call(self, y_true, y_pred):
        edges = (-math.inf, *self.thresholds, math.inf)
        gaps = [(high - low) / self.temperature for low, high in itertools.pairwise(edges)]
        upper = (by_grade(y_true, edges[1:], y_pred.dtype) - y_pred) / self.temperature
        lower = (by_grade(y_true, edges[:-1], y_pred.dtype) - y_pred) / self.temperature
        log_gaps = by_grade(y_true, [math.log(-math.expm1(-gap)) for gap in gaps], y_pred.dtype)
        return tf.math.softplus(-upper) + tf.math.softplus(lower) - log_gaps

    def get_config(self):
        return {**super().get_config(), "temperature": self.temperature}


@register
class ThreePartL2(OrdinalLoss):
    """Three-part squared hinge (Nigam et al., "Semantic Product Search", KDD 2019).

        3PartL2(r, 0) = max(0, r - c_0)²,  (r, 1) = max(0, r - c_1)²,  (r, 2) = max(0, c_2 - r)²

    Grade 0 is pushed below c_0, grade 1 below c_1, grade 2 above c_2; so K = 3. The cut points are
    no thresholds: a score between c_1 and c_2 belongs to no grade.

        >>> loss = ThreePartL2(cut_points=(0.2, 0.55, 0.9), reduction="none")
        >>> scores = [0.5, 0.5, 0.5, 0.5]  # (0.5 - 0.2)², below 0.55, (0.9 - 0.5)², padding
        >>> print(loss([0, 1, 2, -1], scores).numpy().round(4))
        [0.09 0.   0.16 0.  ]

    Args:
        cut_points: (c_0, c_1, c_2), increasing, strictly inside (-1, 1); the default is the
            authors'.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    settings = ("cut_points",)

    def __init__(self, cut_points: Sequence[float] = (0.2, 0.55, 0.9), **kwargs):
        super().__init__(**kwargs)
        self.cut_points = check_thresholds("cut_points", cut_points)
        if len(self.cut_points) != 3:
            raise ValueError(f"cut_points must be three, one for each grade, got {self.cut_points}")

    @property
    def num_grades(self) -> int:
        return 3

    def call(self, y_true, y_pred):
        low, middle, high = self.cut_points
        lower, upper = (-math.inf, -math.inf, high), (low, middle, math.inf)
        return squared_excess(y_true, y_pred, lower, upper)

    def get_config(self):
        return {**super().get_config(), "cut_points": list(self.cut_points)}
