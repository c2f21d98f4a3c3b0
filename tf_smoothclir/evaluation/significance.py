"""Paired significance tests over queries, of the difference between two systems.

The functions take the scores of two systems on the same queries, `[queries]` each. They leave out
queries whose metric is undefined (NaN in both).
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.evaluation.confidence import bootstrap_interval

SAMPLES = 100_000
RESAMPLES = 10_000
_ROUNDING = 1e-6  # scores come from float32 metrics; sums that differ by less are equal
_SAMPLES_PER_BLOCK = 1024
_QUERIES_PER_BLOCK = 4096


def differences(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A - b over the queries that have a score.

    Args:
        a: `[queries]` float.
        b: `[queries]` float.

    Returns:
        `[scored queries]` float64.
    """
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    if a.ndim != 1 or a.shape != b.shape:
        raise ValueError(f"Scores must be [queries] in both, but are {a.shape} and {b.shape}.")
    if np.isinf(a).any() or np.isinf(b).any():
        raise ValueError("Scores must be finite or NaN, but some are infinite.")
    undefined = np.isnan(a)
    if (undefined != np.isnan(b)).any():
        query = int(np.flatnonzero(undefined != np.isnan(b))[0])
        raise ValueError(f"Query {query} has a score in one system and NaN in the other.")
    return (a - b)[~undefined]


def randomization_test(a: np.ndarray, b: np.ndarray, *, seed: int, samples: int = SAMPLES) -> float:
    """Tests whether two systems differ, by swapping their scores at random (Fisher 1935).

    Under the null hypothesis, the systems are interchangeable: the difference of each query might
    as well have the other sign. The statistic is the absolute mean difference; the test is
    two-sided and assumes no distribution. Smucker et al. (2007) recommend it for retrieval. Queries
    without a difference do not matter. If the others have at most `samples` sign patterns, the test
    is exact.

    Args:
        a: `[queries]` float.
        b: `[queries]` float.
    """
    if samples < 1:
        raise ValueError(f"samples must be at least 1, but is {samples}.")
    found = differences(a, b)
    found = found[found != 0]
    least_extreme = abs(found.sum()) - _ROUNDING * np.abs(found).sum()
    if len(found) <= math.log2(samples):
        return float(np.mean(np.abs(_all_sums(found)) >= least_extreme))
    count = 0
    for begin in range(0, samples, _SAMPLES_PER_BLOCK):
        sums = _random_sums(found, seed, begin // _SAMPLES_PER_BLOCK)[: samples - begin]
        count += int((np.abs(sums) >= least_extreme).sum())
    return (count + 1) / (samples + 1)


def _all_sums(values: np.ndarray) -> np.ndarray:
    """`[2 ** len(values)]`, the sums under every pattern of signs."""
    sums = np.zeros(1)
    for value in values:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def _random_sums(values: np.ndarray, seed: int, block: int) -> np.ndarray:
    """`[_SAMPLES_PER_BLOCK]` sums under random signs, which depend on seed and block."""
    sums = np.full(_SAMPLES_PER_BLOCK, -values.sum())
    for part, begin in enumerate(range(0, len(values), _QUERIES_PER_BLOCK)):
        some = values[begin : begin + _QUERIES_PER_BLOCK]
        # Each block of signs has a random stream of its own, so that no block depends on others.
        stream = np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(block, part)))
        bytes_per_sample = -(-len(some) // 8)
        packed = np.random.Generator(stream).bytes(_SAMPLES_PER_BLOCK * bytes_per_sample)
        rows = np.frombuffer(packed, np.uint8).reshape(_SAMPLES_PER_BLOCK, bytes_per_sample)
        kept = np.unpackbits(rows, axis=1, count=len(some)).astype(np.float64)
        sums += 2 * (kept @ some)
    return sums


def paired_t_test(a: np.ndarray, b: np.ndarray) -> float:
    """Tests whether the mean difference is 0, by Student's paired t-test, two-sided.

    Args:
        a: `[queries]` float.
        b: `[queries]` float.
    """
    found = differences(a, b)
    count = len(found)
    if count < 2 or not found.any():
        return 1.0
    if _without_variance(found):
        return max(2.0 ** (1 - count), sys.float_info.min)
    t = found.mean() / (found.std(ddof=1) / math.sqrt(count))
    return min(1.0, max(_two_sided_tail(t, count - 1), sys.float_info.min))


def effect_size(a: np.ndarray, b: np.ndarray) -> float:
    """Cohen's d_z: the mean difference divided by the differences' standard deviation.

    Args:
        a: `[queries]` float.
        b: `[queries]` float.
    """
    found = differences(a, b)
    if len(found) < 2 or not found.any():
        return 0.0
    if _without_variance(found):
        return math.copysign(math.inf, found.mean())
    return float(found.mean() / found.std(ddof=1))


def bootstrap_difference_interval(
    a: np.ndarray, b: np.ndarray, *, seed: int, samples: int = RESAMPLES
) -> tuple[float, float]:
    """The 95% percentile bootstrap interval of the mean of a - b, over queries.

    Both scores of a query are drawn together. Returns `(0, 0)` if no query has a score.
    """
    return bootstrap_interval(differences(a, b), seed=seed, samples=samples)


def holm(p_values: Sequence[float]) -> np.ndarray:
    """Adjusts the p-values of several tests of one family (Holm 1979).

    Args:
        p_values: `[tests]`, each in [0, 1].

    Returns:
        `[tests]`: rejecting those below 5% has at most a 5% chance of any false rejection.
    """
    p_values = np.asarray(p_values, np.float64)
    if not ((p_values >= 0) & (p_values <= 1)).all():
        raise ValueError(f"p-values must be in [0, 1], but are {p_values.tolist()}.")
    order = np.argsort(p_values, kind="stable")
    factors = np.arange(len(order), 0, -1)
    adjusted = np.empty(len(order))
    adjusted[order] = np.minimum(1, np.maximum.accumulate(factors * p_values[order]))
    return adjusted


def _without_variance(values: np.ndarray) -> bool:
    return bool(values.std() <= _ROUNDING * abs(values.mean()))


def _two_sided_tail(t: float, freedom: int) -> float:
    """P(|T| >= |t|) of Student's t distribution with `freedom` degrees of freedom."""
    return _incomplete_beta(freedom / 2, 0.5, freedom, t * t)


def _incomplete_beta(a: float, b: float, u: float, v: float) -> float:
    """The regularised incomplete beta function I_x(a, b) at x = u / (u + v).

    Uses its continued fraction (Abramowitz and Stegun 1964, 26.5.8). Takes both u and v, because
    1 - x would lose its digits near x = 1.
    """
    x, rest = u / (u + v), v / (u + v)
    if rest == 0:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction of the other tail converges faster
        return 1.0 - _incomplete_beta(b, a, v, u)
    log_beta = math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(a * math.log(x) + b * math.log(rest) - log_beta) / a
    return front / _beta_fraction(a, b, x)


def _beta_fraction(a: float, b: float, x: float) -> float:
    """1 + d_1 / (1 + d_2 / (1 + ...)), from its far end.

    The number of terms that matter grows with the square root of a + b.
    """
    value = 1.0
    for m in range(30 + 10 * math.isqrt(int(a + b)), 0, -1):
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + even / (1 + odd / value)
    return 1 - (a + b) * x / (a + 1) / value
