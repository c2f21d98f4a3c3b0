"""Checks of arguments that several losses take."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def check_thresholds(argument: str, values: Sequence[float]) -> tuple[float, ...]:
    """Thresholds as a tuple of floats."""
    edges = (-1, *values, 1) if np.iterable(values) else ()
    ordered = all(map(_is_finite, edges)) and all(np.diff(edges) > 0)
    if len(edges) < 3 or not ordered:
        raise ValueError(
            f"{argument} must be strictly increasing numbers strictly between -1 and 1, at least "
            f"one, got {values!r}: for three grades use (0.2, 0.7), as in the paper"
        )
    return tuple(map(float, values))


def check_temperature(value: float, usual: float) -> float:
    """A temperature as a float."""
    if not (_is_finite(value) and value > 0):
        raise ValueError(f"temperature must be finite and above 0, got {value!r}: use {usual}")
    return float(value)


def _is_finite(value) -> bool:
    return isinstance(value, (int, float, np.number)) and math.isfinite(value)
