"""Smooth Ordinal Search Loss."""

from __future__ import annotations

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.ordinal import ThresholdLoss, squared_excess


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
        edges = (-1.0, *self.thresholds, 1.0)
        return squared_excess(y_true, y_pred, edges[:-1], edges[1:])
