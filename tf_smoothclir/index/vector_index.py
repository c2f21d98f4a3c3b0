"""The FAISS index over vectors: exact or approximate, by inner product, which here is SCS."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path

import faiss
import numpy as np

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.utils.errors import input_error

KINDS = ("flat", "hnsw", "ivf_pq")
LARGEST_FLAT = 1_000_000  # with more, one query takes tens of milliseconds
LARGEST_HNSW = 20_000_000  # with more, the graph takes over 10 GB of memory
HNSW_NEIGHBOURS = 32
SMALLEST_IVF_PQ = 10_000  # 256 centroids per sub-quantiser, 39 vectors per centroid
_HNSW_CONSTRUCTION = 200
# Among a million documents encoded by trained towers, HNSW finds 0.97 to 0.98 of the best ten with
# an effort of 32, at 50 times the speed of flat, and 0.98 to 0.99 with 64, at 40 times. Among more
# documents it finds less, and flat takes longer (benchmarks/README.md).
_LITTLE_EFFORT_UP_TO = 2_000_000
_LITTLE_EFFORT, _EFFORT = 32, 64
_TRAINING_VECTORS_PER_LIST = 64
_CHUNK = 1 << 16
_SEED = 13


@dataclasses.dataclass(frozen=True)
class IndexSettings:
    """How an index is built and searched.

    Attributes:
        kind: One of `KINDS`, or "auto" to choose by the number of documents.
        hnsw_neighbours: Links per document in the HNSW graph; twice as many on its lowest layer.
        search_effort: HNSW: candidates kept during the search (efSearch). IVF-PQ: lists read
            (nprobe). 0 is the default for the kind and the number of documents.
    """

    kind: str = "auto"
    hnsw_neighbours: int = HNSW_NEIGHBOURS
    search_effort: int = 0

    def differences(self, there: IndexSettings) -> str:
        """Returns the settings of an index that differ from these, such as "kind flat".

        Defaults match anything.

        Args:
            there: The settings of the index.
        """
        return ", ".join(
            f"{field.name} {getattr(there, field.name)}"
            for field in dataclasses.fields(self)
            if getattr(self, field.name) not in (field.default, getattr(there, field.name))
            and (field.name != "hnsw_neighbours" or there.kind == "hnsw")
        )

    def resolved(self, documents: int) -> IndexSettings:
        """Returns the settings for a number of documents, with "auto" and 0 replaced.

        Raises:
            InputError: There are too few documents for the kind.
        """
        kind = self.kind
        if kind == "auto":
            kind = "flat" if documents <= LARGEST_FLAT else "hnsw"
            kind = "ivf_pq" if documents > LARGEST_HNSW else kind
        if kind == "ivf_pq" and documents < SMALLEST_IVF_PQ:
            raise input_error(
                "--index_type=ivf_pq",
                f"{documents} documents are too few to train it ({SMALLEST_IVF_PQ} are needed)",
                "Use flat, which is exact and fast at this size",
            )
        effort = self.search_effort or _default_effort(kind, documents)
        return dataclasses.replace(self, kind=kind, search_effort=effort)


class VectorIndex:
    """A FAISS index whose ids are the positions of documents.

    Attributes:
        settings: Resolved settings.
    """

    def __init__(self, index: faiss.Index, settings: IndexSettings):
        """Wraps an index from `build` or `load`."""
        self._index = index
        self.settings = settings

    @classmethod
    def build(cls, settings: IndexSettings, vectors: np.ndarray) -> VectorIndex:
        """Indexes all vectors; IVF-PQ is first trained on a sample drawn with a fixed seed.

        Args:
            settings: Resolved settings.
            vectors: `[documents, dim]` float32, such as a mapped file; read some at a time.
        """
        documents, dim = vectors.shape
        metric = faiss.METRIC_INNER_PRODUCT
        if settings.kind == "flat":
            index = faiss.IndexFlatIP(dim)
        elif settings.kind == "hnsw":
            index = faiss.IndexHNSWFlat(dim, settings.hnsw_neighbours, metric)
            index.hnsw.efConstruction = _HNSW_CONSTRUCTION
        else:
            lists = max(1, min(int(4 * documents**0.5), documents // 39))
            index = faiss.IndexIVFPQ(
                faiss.IndexFlatIP(dim), dim, lists, _subquantizers(dim), 8, metric
            )
            index.cp.seed = index.pq.cp.seed = _SEED
            sample = permutation(documents, _SEED)[: lists * _TRAINING_VECTORS_PER_LIST]
            index.train(np.asarray(vectors[np.sort(sample)]))
        for part in chunks(vectors):
            index.add(part)
        return cls(index, settings)

    @classmethod
    def load(cls, path: Path, settings: IndexSettings) -> VectorIndex:
        """Reads what `save` wrote."""
        return cls(faiss.read_index(str(path)), settings)

    def save(self, path: Path) -> None:
        """Writes the index. A flat one need not be saved: it is the vectors themselves."""
        faiss.write_index(self._index, str(path))

    def search(self, queries: np.ndarray, depth: int) -> tuple[np.ndarray, np.ndarray]:
        """Finds candidates for the best `depth` documents: more than `depth` of them.

        Args:
            queries: `[queries, dim]` float32.
            depth: Documents wanted per query.

        Returns:
            `(scores, positions)`, each `[queries, candidates]`, best first; position -1 if no more
            were found. The scores of IVF-PQ are those of compressed vectors.
        """
        kind, effort = self.settings.kind, self.settings.search_effort
        # Scores of compressed vectors change the order, so many more candidates are needed.
        candidates = max(10 * depth, 100) if kind == "ivf_pq" else depth + 16
        candidates = min(candidates, self._index.ntotal)
        if kind == "hnsw":
            effort = max(effort, candidates)
            parameters = faiss.SearchParametersHNSW(efSearch=effort)
        elif kind == "ivf_pq":
            parameters = faiss.SearchParametersIVF(nprobe=effort)
        else:
            parameters = None
        with _threads_for(len(queries)):
            return self._index.search(queries, candidates, params=parameters)

    def range_search(self, query: np.ndarray, least: float) -> np.ndarray:
        """Returns the positions of all documents with a score above `least`; flat index only."""
        with _threads_for(1):
            _, _, positions = self._index.range_search(query[None], least)
        return positions


def _default_effort(kind: str, documents: int) -> int:
    if kind == "flat":
        return 0
    return _LITTLE_EFFORT if kind == "hnsw" and documents <= _LITTLE_EFFORT_UP_TO else _EFFORT


def chunks(vectors: np.ndarray) -> Iterator[np.ndarray]:
    """Yields the vectors in order, `[at most 65,536, dim]` float32 at a time."""
    for begin in range(0, len(vectors), _CHUNK):
        yield np.ascontiguousarray(vectors[begin : begin + _CHUNK], np.float32)


@contextlib.contextmanager
def _threads_for(queries: int) -> Iterator[None]:
    """Limits FAISS to one thread per query: on busy cores, threads wait for each other."""
    threads = faiss.omp_get_max_threads()  # the setting of this Python thread
    faiss.omp_set_num_threads(min(threads, queries) or 1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(threads)


def _subquantizers(dim: int) -> int:
    """Returns how many parts a vector is cut into; each has about 4 numbers and becomes a byte."""
    return max(parts for parts in range(1, max(1, dim // 4) + 1) if dim % parts == 0)
