"""Confidence intervals of means over queries."""

from __future__ import annotations

import numpy as np

LEVEL = 0.95
_QUERIES_PER_CHUNK = 1 << 22


def bootstrap_interval(
    values: np.ndarray, *, seed: int, samples: int = 1000
) -> tuple[float, float]:
    """The 95% percentile bootstrap interval of the mean (Efron 1979), over queries.

    Args:
        values: `[queries]` float; NaN is left out.

    Returns:
        `(low, high)`; `(0, 0)` if no value is left.
    """
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 0.0
    generator = np.random.Generator(np.random.PCG64(seed))
    means = np.empty(samples)
    step = max(1, _QUERIES_PER_CHUNK // len(values))
    for begin in range(0, samples, step):
        rows = min(step, samples - begin)
        means[begin : begin + rows] = values[
            generator.integers(len(values), size=(rows, len(values)))
        ].mean(axis=1)
    tail = (1 - LEVEL) / 2
    return tuple(float(bound) for bound in np.quantile(means, [tail, 1 - tail]))
