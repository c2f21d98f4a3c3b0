"""Histograms of positive numbers over many sizes, such as the gradient norms of all steps."""

from __future__ import annotations

import math

_LEAST = -60  # 2^-30; zero is there too


def bin_of(value: float) -> int:
    """The bin of a number that is not negative: twice its binary logarithm, rounded down.

    Each bin reaches from `lower_edge` to 1.41 times that. All numbers below 1e-9 share one.
    """
    return max(_LEAST, math.floor(2 * math.log2(value))) if value > 0 else _LEAST


def lower_edge(number: int) -> float:
    """Lower edge of a bin."""
    return 2.0 ** (number / 2)
