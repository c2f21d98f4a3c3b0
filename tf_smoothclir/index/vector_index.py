"""Indexes over vectors by FAISS, by inner product, which here is SCS.

They propose documents, whose ids are their positions, for a `Ranker` to score.

A flat index reads one byte for each number of all documents. The number x_i of a vector becomes
c_i, the whole number next to x_i / s_i, where s_i is the largest |x_i| of all documents, divided by
127. So no inner product with a query q is off by more than

    |Σ q_i x_i - Σ q_i s_i c_i| <= Σ |q_i| s_i / 2.

To add up products of single bytes, which is fastest, the weights q_i s_i are rounded in the same
way, to t k_i with t = max |q_i s_i| / 127. By Cauchy and Schwarz, this adds no more than

    |Σ (q_i s_i - t k_i) c_i| <= ‖q s - t k‖ max ‖c‖.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import faiss
import numpy as np

from tf_smoothclir.index.index_kind import HNSW_CONSTRUCTION, HNSW_NEIGHBOURS, search_effort
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.storage.random_access import RandomAccess

_CODES, _SCALES, _LONGEST = "codes", "scales", "longest"
_LARGEST = 127
_LEAST_SCALE = 1e-20  # of a column of zeros
_OFFSET = 128  # FAISS keeps a signed byte as a byte that is this much larger
_NUMBERS_AT_ONCE = 16  # vectors of another length would take FAISS ten times as long
_FEWEST_CANDIDATES = 400
_CHUNK, _ROWS = 1 << 16, 1 << 12


class FlatIndex:
    """Inner products with bytes: the best documents, and how far their scores may be off.

    FAISS adds up k_i c_i: whole numbers, so its sums are exact.
    """

    def __init__(self, codes: RandomAccess, scales: np.ndarray, longest: float):
        """Reads what `opened` returns: c, `[documents, dim]` int8; s, `[dim]` float32; max ‖c‖."""
        self._scales, self._longest, dim = scales, longest, len(scales)
        self._padding = -dim % _NUMBERS_AT_ONCE
        self._index = faiss.IndexScalarQuantizer(
            dim + self._padding,
            faiss.ScalarQuantizer.QT_8bit_direct_signed,
            faiss.METRIC_INNER_PRODUCT,
        )
        for begin in range(0, len(codes), _CHUNK * dim):
            # The codes are added as FAISS stores them; it would quantise floats again. A zero is
            # the byte 128, also in the padding.
            part = codes.part(begin, min(_CHUNK * dim, len(codes) - begin))
            rows = np.frombuffer(part, np.uint8).reshape(-1, dim) + np.uint8(_OFFSET)
            padded = np.pad(rows, ((0, 0), (0, self._padding)), constant_values=_OFFSET)
            self._index.add_sa_codes(padded)

    @staticmethod
    def write(vectors: np.ndarray, directory: Path) -> None:
        """Rounds `[documents, dim]` float32 into a directory, some documents at a time."""
        largest, longest = np.zeros(vectors.shape[1], np.float32), 0.0
        for part in _chunks(vectors):
            np.maximum(largest, np.abs(part).max(axis=0), out=largest)
        scales = np.maximum(largest / np.float32(_LARGEST), np.float32(_LEAST_SCALE))
        with open_to_write(directory / _CODES) as file:
            for part in _chunks(vectors):
                codes = np.clip(np.rint(part / scales), -_LARGEST, _LARGEST).astype(np.int8)
                write_array(file, codes, "i1")
                for begin in range(0, len(codes), _ROWS):
                    rows = codes[begin : begin + _ROWS].astype(np.float32)
                    longest = max(longest, float(np.linalg.norm(rows, axis=1).max()))
        for name, array in ((_SCALES, scales), (_LONGEST, np.array([longest]))):
            with open_to_write(directory / name) as file:
                write_array(file, array, "<f4")

    @staticmethod
    def opened(directory: Path) -> tuple[RandomAccess, np.ndarray, float]:
        """Opens what `write` wrote."""
        scales, (longest,) = (np.fromfile(directory / name, "<f4") for name in (_SCALES, _LONGEST))
        return RandomAccess(directory / _CODES, "i1"), scales, float(longest)

    def candidates(self, depth: int) -> int:
        """Among how many documents the best `depth` are looked for, at least."""
        return max(2 * depth, _FEWEST_CANDIDATES)

    def search(self, queries: np.ndarray, candidates: int) -> tuple[np.ndarray, np.ndarray]:
        """`(scores, positions)`, each `[queries, candidates]`, best first; position -1 for none."""
        codes, scales = self._of_queries(queries)
        padded = np.pad(codes, ((0, 0), (0, self._padding)))
        with threads_for(len(queries)):
            sums, positions = self._index.search(padded, candidates)
        return sums * scales[:, None], positions

    def error(self, query: np.ndarray) -> float:
        """Bound on the error of any document's score by `[dim]`, rounding included."""
        codes, (scale,) = self._of_queries(query[None])
        of_query = np.linalg.norm(query * self._scales - scale * codes[0])
        error = float(np.abs(query) @ self._scales / 2 + of_query * self._longest)
        return error + 2.0**-22 * len(query)  # of float32

    def _of_queries(self, queries: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """k, `[queries, dim]` float32, whole numbers from -127 to 127, and t, `[queries]`."""
        weights = queries * self._scales
        scales = np.abs(weights).max(axis=1) / np.float32(_LARGEST)
        scales = np.where(scales > 0, scales, np.float32(1))
        return np.rint(weights / scales[:, None]), scales


class HnswIndex:
    """Finds nearly all of the nearest documents in a graph; `FlatIndex` says what is what."""

    def __init__(self, file: BinaryIO):
        """Reads the file that `write` wrote."""
        self._index = faiss.read_index(faiss.PyCallbackIOReader(file.read))

    @staticmethod
    def write(vectors: np.ndarray, path: Path) -> None:
        """Indexes vectors, `[documents, dim]` float32."""
        dim, metric = vectors.shape[1], faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexHNSWFlat(dim, HNSW_NEIGHBOURS, metric)
        index.hnsw.efConstruction = HNSW_CONSTRUCTION
        for part in _chunks(vectors):
            index.add(part)
        faiss.write_index(index, str(path))

    def candidates(self, depth: int) -> int:
        """Among how many documents the best `depth` are looked for, at least."""
        return depth + 16

    def search(self, queries: np.ndarray, candidates: int) -> tuple[np.ndarray, np.ndarray]:
        """Documents with their SCS."""
        effort = max(search_effort(self._index.ntotal), candidates)
        parameters = faiss.SearchParametersHNSW(efSearch=effort)
        with threads_for(len(queries)):
            return self._index.search(queries, candidates, params=parameters)

    def error(self, query: np.ndarray) -> float:
        """Infinity: nothing is known of documents that it does not find."""
        return float("inf")


def _chunks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the vectors in order, `[at most 65,536, dim]` float32 at a time."""
    for begin in range(0, len(vectors), _CHUNK):
        yield np.ascontiguousarray(vectors[begin : begin + _CHUNK], np.float32)


@contextlib.contextmanager
def threads_for(queries: int) -> Iterator[None]:
    """Limits FAISS to one thread per query: on busy cores, threads wait for each other."""
    threads = faiss.omp_get_max_threads()  # the setting of this Python thread
    faiss.omp_set_num_threads(min(threads, queries) or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)
