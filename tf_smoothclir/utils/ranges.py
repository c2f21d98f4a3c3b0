"""Ranges of numbers, one after the other."""

import numpy as np


def ranges(begins: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """`begin`, `begin + 1`, ... of each length, int64, one range after the other."""
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(begins - before, lengths)
