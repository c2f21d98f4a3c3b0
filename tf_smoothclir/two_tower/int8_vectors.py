"""Vectors of one byte a number: a quarter of the size, and nearly the same inner products.

The number x_i of a vector becomes c_i, the whole number next to x_i / s_i, where s_i is the largest
|x_i| of all documents, divided by 127. So no inner product with a query q is off by more than

    |Σ q_i x_i - Σ q_i s_i c_i| <= Σ |q_i| s_i / 2.

To add up products of single bytes, which is fastest, the weights q_i s_i are rounded in the same
way, to t k_i with t = max |q_i s_i| / 127. By Cauchy and Schwarz, this adds no more than

    |Σ (q_i s_i - t k_i) c_i| <= ‖q s - t k‖ max ‖c‖.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tf_smoothclir.storage.files import open_to_write, write_array

_CODES, _SCALES, _LONGEST = "codes", "scales", "longest"
_LARGEST = 127
_LEAST_SCALE = 1e-20  # of a column of zeros
_CHUNK, _ROWS = 1 << 16, 1 << 12


class Int8Queries(NamedTuple):
    """Queries as weights of codes."""

    codes: np.ndarray  # `[queries, dim]` float32, k: whole numbers from -127 to 127
    scales: np.ndarray  # `[queries]` float32, t


class Int8Vectors:
    """Rows are read as from an array of float32: `vectors[positions]`, `vectors[begin:end]`.

    Attributes:
        codes: `[documents, dim]` int8, c.
        scales: `[dim]` float32, s.
        shape: `(documents, dim)`.
    """

    def __init__(self, codes: np.ndarray, scales: np.ndarray, longest: float):
        self.codes, self.scales, self.longest = codes, scales, longest
        self.shape = codes.shape

    @classmethod
    def of(cls, vectors: np.ndarray) -> Int8Vectors:
        """Rounds `[documents, dim]` float32, in memory."""
        scales = _scales(vectors)
        parts = list(_rounded(vectors, scales))
        return cls(np.concatenate(parts), scales, max(map(_longest, parts)))

    @classmethod
    def write(cls, vectors: np.ndarray, directory: Path) -> None:
        """Rounds `[documents, dim]` float32 into a directory, some documents at a time."""
        scales, longest = _scales(vectors), 0.0
        with open_to_write(directory / _CODES) as file:
            for part in _rounded(vectors, scales):
                write_array(file, part, "i1")
                longest = max(longest, _longest(part))
        for name, array in ((_SCALES, scales), (_LONGEST, np.array([longest]))):
            with open_to_write(directory / name) as file:
                write_array(file, array, "<f4")

    @classmethod
    def open(cls, directory: Path) -> Int8Vectors:
        """Maps what `write` wrote."""
        scales, (longest,) = (np.fromfile(directory / name, "<f4") for name in (_SCALES, _LONGEST))
        codes = np.memmap(directory / _CODES, np.int8, mode="r").reshape(-1, len(scales))
        return cls(np.asarray(codes), scales, float(longest))

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, positions: np.ndarray | slice) -> np.ndarray:
        return self.codes[positions] * self.scales

    def of_queries(self, queries: np.ndarray) -> Int8Queries:
        """Rounds the weights of queries, `[queries, dim]` float32."""
        weights = queries * self.scales
        scales = np.abs(weights).max(axis=1) / np.float32(_LARGEST)
        scales = np.where(scales > 0, scales, np.float32(1))
        return Int8Queries(np.rint(weights / scales[:, None]), scales)

    def error(self, query: np.ndarray) -> float:
        """Bound on |t Σ k_i c_i - q·x| for `[dim]`, without the errors of float32 itself."""
        codes, (scale,) = self.of_queries(query[None])
        of_query = np.linalg.norm(query * self.scales - scale * codes[0])
        return float(np.abs(query) @ self.scales / 2 + of_query * self.longest)


def _scales(vectors: np.ndarray) -> np.ndarray:
    largest = np.zeros(vectors.shape[1], np.float32)
    for begin in range(0, len(vectors), _CHUNK):
        np.maximum(largest, np.abs(vectors[begin : begin + _CHUNK]).max(axis=0), out=largest)
    return np.maximum(largest / np.float32(_LARGEST), np.float32(_LEAST_SCALE))


def _rounded(vectors: np.ndarray, scales: np.ndarray) -> Iterator[np.ndarray]:
    for begin in range(0, len(vectors), _CHUNK):
        numbers = np.rint(vectors[begin : begin + _CHUNK] / scales)
        yield np.clip(numbers, -_LARGEST, _LARGEST).astype(np.int8)


def _longest(codes: np.ndarray) -> float:
    return max(
        float(np.linalg.norm(codes[begin : begin + _ROWS].astype(np.float32), axis=1).max())
        for begin in range(0, len(codes), _ROWS)
    )
