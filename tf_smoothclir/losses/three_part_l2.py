"""Three-part squared hinge loss."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tf_smoothclir.losses.arguments import check_thresholds
from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.ordinal import OrdinalLoss, squared_excess


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
            raise ValueError(f"cut_points must be three, one for each grade, got {cut_points!r}")

    @property
    def num_grades(self) -> int:
        return 3

    def call(self, y_true, y_pred):
        low, middle, high = self.cut_points
        lower, upper = (-math.inf, -math.inf, high), (low, middle, math.inf)
        return squared_excess(y_true, y_pred, lower, upper)

    def get_config(self):
        return {**super().get_config(), "cut_points": list(self.cut_points)}
