"""The FAISS index over vectors, by inner product, which here is SCS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import faiss
import numpy as np

from tf_smoothclir.index.index_settings import SCANNED, IndexSettings
from tf_smoothclir.index.scans import BitScan, Int8Scan, threads_for
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
