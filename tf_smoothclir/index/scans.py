"""Indexes in memory that read all documents for each query, in a byte or a bit per number.

What they find is scored by better vectors after it; see `Ranker`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import faiss
import numpy as np

from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

_CHUNK = 1 << 16
_OFFSET = 128  # FAISS keeps a signed byte as a byte that is this much larger
_NUMBERS_AT_ONCE = 16  # vectors of another length would take FAISS ten times as long


class Int8Scan:
    """Inner products with int8 vectors: their best documents, and how far scores may be off.

    FAISS adds up k_i c_i: whole numbers, so its sums are exact.
    """

    def __init__(self, vectors: Int8Vectors):
        self._vectors = vectors
        dim = vectors.shape[1]
        self._padding = -dim % _NUMBERS_AT_ONCE
        self._index = faiss.IndexScalarQuantizer(
            dim + self._padding,
            faiss.ScalarQuantizer.QT_8bit_direct_signed,
            faiss.METRIC_INNER_PRODUCT,
        )
        for begin in range(0, len(vectors), _CHUNK):
            # The codes are added as FAISS stores them; it would quantise floats again. A zero is
            # the byte 128, also in the padding.
            part = vectors.codes[begin : begin + _CHUNK].view(np.uint8) + np.uint8(_OFFSET)
            padded = np.pad(part, ((0, 0), (0, self._padding)), constant_values=_OFFSET)
            self._index.add_sa_codes(padded)

    def search(self, queries: np.ndarray, candidates: int) -> tuple[np.ndarray, np.ndarray]:
        """The best documents by their int8 vectors and rounded queries.

        Args:
            queries: `[queries, dim]` float32.

        Returns:
            `(scores, positions)`, each `[queries, candidates]`, best first.
        """
        codes, scales = self._vectors.of_queries(queries)
        padded = np.pad(codes, ((0, 0), (0, self._padding)))
        with threads_for(len(queries)):
            sums, positions = self._index.search(padded, candidates)
        return sums * scales[:, None], positions

    def error(self, query: np.ndarray) -> float:
        """Bound on the error of any document's score by `[dim]`, rounding included."""
        return self._vectors.error(query) + 2.0**-22 * len(query)  # the second: float32 rounding


class BitScan:
    """Numbers of signs that two vectors share: a bit per number, a rough order of the documents."""

    def __init__(self, vectors: Int8Vectors):
        self._index = faiss.IndexBinaryFlat(8 * len(_bits(vectors.codes[:1])[0]))
        for begin in range(0, len(vectors), _CHUNK):
            self._index.add(_bits(vectors.codes[begin : begin + _CHUNK]))

    def search(self, queries: np.ndarray, candidates: int) -> tuple[np.ndarray, np.ndarray]:
        """Documents that share the most signs; `Int8Scan.search` says what is what."""
        with threads_for(len(queries)):
            distances, positions = self._index.search(_bits(queries), candidates)
        # Hamming distance counts the signs that differ.
        return -distances.astype(np.float32), positions


def _bits(vectors: np.ndarray) -> np.ndarray:
    return np.packbits(vectors > 0, axis=1)


@contextlib.contextmanager
def threads_for(queries: int) -> Iterator[None]:
    """Limits FAISS to one thread per query: on busy cores, threads wait for each other."""
    threads = faiss.omp_get_max_threads()  # the setting of this Python thread
    faiss.omp_set_num_threads(min(threads, queries) or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
