"""Proportional odds as in the code of Liu et al. 2020."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.ordinal import ThresholdLoss, by_grade


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

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        edges = (-1.0, *self.thresholds, 1.0)
        above = y_pred - by_grade(y_true, edges[1:], y_pred.dtype)
        below = by_grade(y_true, edges[:-1], y_pred.dtype) - y_pred
        return tf.math.softplus(above) + tf.math.softplus(below)
