"""Cut points between grades, found on scored documents after training.

The thresholds of a loss say where scores should be, not where they are. The cut points found here
make the macro-averaged accuracy as large as any cut points can: the mean, over the grades, of the
share of the documents of a grade that are predicted right. Each grade counts alike, however rare,
so the number of sampled documents of grade 0 does not matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.evaluation.evaluate import Evaluation
from tf_smoothclir.protocols.cut_points import CutPoints


def calibrated(validation: Evaluation, alone: Sequence[np.ndarray] | None = None) -> CutPoints:
    """The cut points that are best for the candidate lists and the hits of a split."""
    scores = best_cut_points(validation.scores_by_grade)
    return CutPoints(
        scores,
        shares=() if validation.hits is None else best_cut_points(validation.shares_by_grade()),
        alone=scores if alone is None else best_cut_points(alone),
    )


def best_cut_points(scores_by_grade: Sequence[np.ndarray]) -> tuple[float, ...]:
    """The K-1 cut points of the highest macro-averaged accuracy.

    The grade of a score is the number of cut points below it. A cut point lies half-way between two
    neighbouring scores; two are equal where the grade between them is better never predicted.

    They are exact: with P_g[c] the share of the documents of grade g below c, the accuracy is a
    constant plus the sum of P_{g-1}[c_g] - P_g[c_g] over the cut points. So the best sum whose last
    cut point is c_g adds this to the best sum of those before it that are not above c_g.
    """
    by_grade = [np.sort(np.asarray(own, np.float32)) for own in scores_by_grade]
    values = np.unique(np.concatenate(by_grade))
    # Place c is above the c lowest values.
    shares = [
        np.append(0, np.searchsorted(own, values, "right")) / max(1, len(own)) for own in by_grade
    ]
    places, sums = [], np.zeros(len(values) + 1)
    for lower, upper in itertools.pairwise(shares):
        sums = np.maximum.accumulate(sums) + lower - upper
        places.append(sums)
    last, found = len(values), []
    for sums in reversed(places):
        last = int(np.argmax(sums[: last + 1]))
        found.append(last)
    return tuple(_between(values, place) for place in reversed(found))


def _between(values: np.ndarray, place: int) -> float:
    if place == 0:
        return float(np.nextafter(values[0], np.float32(-np.inf)))
    below = values[place - 1]
    if place == len(values):
        return float(below)
    middle = below + (values[place] - below) / 2
    return float(below if middle >= values[place] else middle)
