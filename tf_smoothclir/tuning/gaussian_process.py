"""Gaussian process regression over a finite space: which point to try next.

keras-tuner's Bayesian oracle needs scikit-learn, may propose a point twice, and draws from a
generator that is not saved. This one is a function of the points and their scores only.
"""

from __future__ import annotations

import math

import numpy as np

_LENGTHS = (0.1, 0.2, 0.4, 0.8, 1.6)  # of features in [0, 1]
_NOISES = (1e-4, 1e-2, 1e-1)  # variance, of scores with variance 1
_EXPLORATION = 2.0  # standard deviations


def most_promising(known: np.ndarray, scores: np.ndarray, candidates: np.ndarray) -> int:
    """The candidate of the highest upper confidence bound (Srinivas et al. 2010).

    The kernel is Matern 5/2; length and noise are the most likely values of a small grid.

    Args:
        known: `[n, features]`, the points tried so far.
        scores: `[n]`, their scores; higher is better.
        candidates: `[m, features]`; ties go to the first.
    """
    spread = scores.std()
    targets = (scores - scores.mean()) / (spread if spread > 0 else 1.0)
    fits = [_fit(known, targets, length, noise) for length in _LENGTHS for noise in _NOISES]
    _, length, lower, weights = max(fits, key=lambda fit: fit[0])
    cross = _matern(candidates, known, length)
    variance = 1 - np.square(np.linalg.solve(lower, cross.T)).sum(axis=0)
    bound = cross @ weights + _EXPLORATION * np.sqrt(np.maximum(variance, 0))
    return int(np.argmax(np.round(bound, 9)))  # the last bits depend on the machine


def _fit(points: np.ndarray, targets: np.ndarray, length: float, noise: float):
    """Log likelihood, length, Cholesky factor, weights (Rasmussen, Williams, alg. 2.1)."""
    lower = np.linalg.cholesky(_matern(points, points, length) + noise * np.eye(len(points)))
    weights = np.linalg.solve(lower.T, np.linalg.solve(lower, targets))
    likelihood = -0.5 * targets @ weights - np.log(np.diag(lower)).sum()
    return likelihood, length, lower, weights


def _matern(left: np.ndarray, right: np.ndarray, length: float) -> np.ndarray:
    squares = (
        np.square(left).sum(axis=1)[:, None] + np.square(right).sum(axis=1) - 2 * left @ right.T
    )
    scaled = math.sqrt(5) * np.sqrt(np.maximum(squares, 0)) / length
    return (1 + scaled + np.square(scaled) / 3) * np.exp(-scaled)
