"""Slow plain-Python listwise losses, written from the formulas: one list without padding."""

import itertools
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


def approx_ndcg(scores, grades) -> float:
    """-NDCG with the gain 2^g - 1, and ranks that compare by a sigmoid (Qin et al. 2010)."""
    ideal = sum(
        _gain(grade) / math.log2(1 + rank)
        for rank, grade in enumerate(sorted(grades, reverse=True), start=1)
    )
    if ideal == 0:
        return 0.0
    found = 0.0
    for i, s in enumerate(scores):
        others = [t for j, t in enumerate(scores) if j != i]
        rank = 1 + sum(1 / (1 + math.exp(s - t)) for t in others)
        found += _gain(grades[i]) / math.log2(1 + rank)
    return -found / ideal


def pairwise_hinge(scores, grades) -> float:
    """Mean of max(0, 1 - (s_i - s_j)) over the pairs with g_i > g_j."""
    return _mean(max(0.0, 1 - d) for d in _preferences(scores, grades))


def pairwise_logistic(scores, grades) -> float:
    """Mean of log(1 + exp(-(s_i - s_j))) over the pairs with g_i > g_j."""
    return _mean(math.log(1 + math.exp(-d)) for d in _preferences(scores, grades))


def list_mle(scores, grades) -> float:
    """The largest -log likelihood over all orders by falling grade, each one tried."""
    orders = itertools.permutations(range(len(scores)))
    return max(
        plackett_luce([scores[i] for i in order])
        for order in orders
        if all(grades[a] >= grades[b] for a, b in itertools.pairwise(order))
    )


def plackett_luce(scores) -> float:
    """-log likelihood of drawing documents in this order, each with the odds exp(score)."""
    return sum(_log_sum_exp(scores[i:]) - s for i, s in enumerate(scores))


def _preferences(scores, grades):
    for i, j in itertools.permutations(range(len(scores)), 2):
        if grades[i] > grades[j]:
            yield scores[i] - scores[j]


def _mean(values) -> float:
    values = list(values)
    return sum(values) / len(values) if values else 0.0


def _gain(grade) -> float:
    return 2.0**grade - 1


def _log_sum_exp(values) -> float:
    return math.log(math.fsum(math.exp(value) for value in values))
