"""The FAISS index over vectors, by inner product, which here is SCS.

Indexes in memory read all documents for each query, in a byte or a bit per number. What they find
is scored by better vectors after it; see `Ranker`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import faiss
import numpy as np

from tf_smoothclir.index.index_settings import SCANNED, IndexSettings
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

_HNSW_CONSTRUCTION = 200
_FEWEST_SCANNED = 400
_CHUNK = 1 << 16


class VectorIndex:
    """Proposes documents by their vectors; their ids are their positions."""

    def __init__(self, index: faiss.Index | Int8Scan | BitScan, settings: IndexSettings):
        self._index = index
        self.settings = settings

    @classmethod
    def scan(cls, settings: IndexSettings, vectors: Int8Vectors) -> VectorIndex:
        """Puts an index of one of the kinds `SCANNED` into memory."""
        return cls((BitScan if settings.kind == "binary" else Int8Scan)(vectors), settings)

    @classmethod
    def build(cls, settings: IndexSettings, vectors: np.ndarray) -> VectorIndex:
        """Indexes all vectors.

        Args:
            vectors: `[documents, dim]` float32, such as a mapped file; read some at a time.
        """
        if settings.kind in SCANNED:
            return cls.scan(settings, Int8Vectors.of(vectors))
        index = faiss.IndexHNSWFlat(
            vectors.shape[1], settings.hnsw_neighbours, faiss.METRIC_INNER_PRODUCT
        )
        index.hnsw.efConstruction = _HNSW_CONSTRUCTION
        for part in chunks(vectors):
            index.add(part)
        return cls(index, settings)

    @classmethod
    def load(cls, file: BinaryIO, settings: IndexSettings) -> VectorIndex:
        """Reads the file that `save` wrote."""
        return cls(faiss.read_index(faiss.PyCallbackIOReader(file.read)), settings)

    def save(self, path: Path) -> None:
        """Writes an index that is not `SCANNED`."""
        faiss.write_index(self._index, str(path))

    def error(self, query: np.ndarray) -> float:
        """Bound on the error of any document's score by `[dim]`; infinity: not known."""
        if isinstance(self._index, Int8Scan):
            return self._index.error(query)
        return float("inf")

    def candidates(self, depth: int) -> int:
        """Among how many documents the best `depth` are looked for, at least.

        Rough scores change the order, so many more are needed.
        """
        kind = self.settings.kind
        if kind == "hnsw":
            return depth + 16
        return max((10 if kind == "binary" else 2) * depth, _FEWEST_SCANNED)

    def search(self, queries: np.ndarray, candidates: int) -> tuple[np.ndarray, np.ndarray]:
        """Finds documents.

        Args:
            queries: `[queries, dim]` float32.

        Returns:
            `(scores, positions)`, each `[queries, candidates]`, best first; position -1 if no more
            were found. Scores are those of compressed vectors, except for HNSW.
        """
        if self.settings.kind in SCANNED:
            return self._index.search(queries, candidates)
        effort = max(self.settings.search_effort, candidates)
        parameters = faiss.SearchParametersHNSW(efSearch=effort)
        with threads_for(len(queries)):
            return self._index.search(queries, candidates, params=parameters)


def chunks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the vectors in order, `[at most 65,536, dim]` float32 at a time."""
    for begin in range(0, len(vectors), _CHUNK):
        yield np.ascontiguousarray(vectors[begin : begin + _CHUNK], np.float32)


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
