"""Negative log-likelihood of McCullagh's model of cumulative logits."""

from __future__ import annotations

import itertools
import math

import tensorflow as tf

from tf_smoothclir.losses.arguments import check_temperature
from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.ordinal import ThresholdLoss, by_grade


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
