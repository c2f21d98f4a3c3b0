"""Slow plain-Python listwise losses, written from the formulas: one list without padding."""

import math


def softmax(scores, grades) -> float:
    """-Σ_i g_i log(exp(s_i) / Σ_j exp(s_j))."""
    return -sum(grade * (s - _log_sum_exp(scores)) for s, grade in zip(scores, grades))


def ordinal_softmax(scores, grades, weight=0.1) -> float:
    """Σ_i w^(highest - g_i) log(1 + Σ_j exp(s_j - s_i)), g_i > 0, j of lower grades."""
    total = 0.0
    for s, grade in zip(scores, grades):
        if grade > 0:
            odds = sum(math.exp(t - s) for t, other in zip(scores, grades) if other < grade)
            total += weight ** (max(grades) - grade) * math.log1p(odds)
    return total


def _log_sum_exp(values) -> float:
    return math.log(math.fsum(math.exp(value) for value in values))
