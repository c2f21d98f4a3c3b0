"""Mean squared error against the segments of the grades."""

from __future__ import annotations

import itertools

import tensorflow as tf

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.ordinal import ThresholdLoss, by_grade


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

    Args:
        thresholds: θ_1 < ... < θ_{K-1}, strictly inside (-1, 1); the default is the paper's.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        edges = (-1.0, *self.thresholds, 1.0)
        middles = [(low + high) / 2 for low, high in itertools.pairwise(edges)]
        return tf.square(y_pred - by_grade(y_true, middles, y_pred.dtype))
