"""Where thresholds are searched: below what scores can reach, and on beyond the edge of a grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Sequence

from tf_smoothclir.utils.errors import input_error

CUT_POINTS = tuple(itertools.product((0.0, 0.2), (0.4, 0.55), (0.7, 0.9)))  # of 3PartL2
_SMALLEST_STEP = 0.05
_FIRST_STEP = 0.2  # where all values of a grid are alike


def threshold_grids(lower: Sequence[float], upper: Sequence[float]) -> dict:
    """The grids to tune over: all pairs θ_1 < θ_2, and `CUT_POINTS`."""
    pairs = tuple((low, high) for low in lower for high in upper if low < high)
    if not pairs or not all(-1 < value < 1 for value in (*lower, *upper)):
        raise input_error(
            "--theta_1, --theta_2",
            f"{list(lower)} and {list(upper)} give no pairs θ_1 < θ_2 inside (-1, 1)",
            "Give values such as --theta_1=0,0.2 --theta_2=0.5,0.7",
        )
    return {"thresholds": pairs, "cut_points": CUT_POINTS}


def highest_score(dim: int, epsilon: float) -> float:
    """What SCS stays below for two vectors of tanh, which are below √dim: (√dim / (√dim + ε))²."""
    root = math.sqrt(dim)
    return (root / (root + epsilon)) ** 2


def reachable(grid: Collection[Sequence[float]], limit: float) -> tuple[tuple[float, ...], ...]:
    """The thresholds of a grid that lie below a limit; if none do, all times the limit."""
    below = tuple(tuple(values) for values in grid if values[-1] < limit)
    return below or tuple(tuple(round(v * limit, 3) for v in values) for values in grid)


def beyond_edge(
    best: tuple[float, ...], tried: Collection[tuple[float, ...]], limit: float
) -> list[tuple[float, ...]]:
    """What to try next: one step further where the best thresholds lie at an edge."""
    # Each threshold is moved alone, then all together. A step that would pass the next threshold or
    # the limit goes half the way there, unless that is less than 0.05.
    found = []
    bounds = (-1.0, *best, limit)
    for index, value in enumerate(best):
        before, after = best[:index], best[index + 1 :]
        values = sorted(t[index] for t in tried if (t[:index], t[index + 1 :]) == (before, after))
        if value == values[-1]:
            found.append((*before, _moved(value, values, bounds[index + 2]), *after))
        if value == values[0]:
            mirrored = [-other for other in reversed(values)]
            found.append((*before, -_moved(-value, mirrored, -bounds[index]), *after))
    if found:
        for step in (_FIRST_STEP, -_FIRST_STEP):
            found.append(tuple(round(value + step, 3) for value in best))
    # x + 0.0 takes the sign of -0, which would name another cell.
    unsigned = dict.fromkeys(tuple(value + 0.0 for value in values) for values in found)
    return [t for t in unsigned if t not in tried and _rises(t, limit)]


def _moved(value: float, values: Sequence[float], bound: float) -> float:
    """The last of some values one step up, or half the way to the bound, or as it is."""
    target = value + (values[-1] - values[-2] if len(values) > 1 else _FIRST_STEP)
    if target >= bound:
        target = (value + bound) / 2
    target = round(target, 3)
    return target if round(target - value, 3) >= _SMALLEST_STEP else value


def _rises(thresholds: Sequence[float], limit: float) -> bool:
    edges = (-1.0, *thresholds, limit)
    return all(low < high for low, high in itertools.pairwise(edges))
