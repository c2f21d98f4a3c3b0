"""The dense half of an index: vectors by the document tower, and a FAISS index over them.

A directory with

* `vectors`, float32, row after row; not for the kinds int8 and binary;
* for the kinds that are read as a whole for each query, int8 vectors: `codes` and `scales`;
* for HNSW, `faiss`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.index_settings import OF_INT8, SCANNED, IndexSettings
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import VectorIndex
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors
from tf_smoothclir.utils.records import record_from_json

RECALL_QUERIES, _DEPTH, _SEED = 1000, 10, 13  # of the recall
_VECTORS, _FAISS = "vectors", "faiss"
Encode = Callable[..., dict]
QueryVectors = Callable[[], np.ndarray | None]


@dataclasses.dataclass(frozen=True)
class Recall:
    """Recall of an index: the share of the exact ranking that it finds.

    Attributes:
        value: Share of the exact best `depth` documents that are found, on average.
        queries: How many queries it was measured with; 0 for an exact index.
    """

    value: float
    depth: int
    queries: int
    measured_by: str


@dataclasses.dataclass(frozen=True)
class DenseNote:
    """Entry of a manifest about vectors."""

    summary: str
    dim: int
    settings: IndexSettings
    recall: Recall


class DenseHalf:
    """Builds the dense half of an index; a `Half`."""

    name = "dense"

    def __init__(
        self,
        encode: Encode,
        dim: int,
        settings: IndexSettings | None = None,
        query_vectors: QueryVectors = lambda: None,
    ):
        """Stores how vectors are made and indexed.

        Args:
            query_vectors: Returns `[queries, dim]` to measure the recall with; None to use vectors
                of documents.
        """
        self._encode, self._dim = encode, dim
        self._settings, self._query_vectors = settings or IndexSettings(), query_vectors

    def encode(self, documents: Sequence[Text]) -> np.ndarray:
        """The vectors of documents, `[documents, dim]` float32."""
        return encode_texts(self._encode, [document.text for document in documents])

    @staticmethod
    def kept(half: Ranker, positions: np.ndarray, documents: Sequence[Text]) -> np.ndarray | None:
        """Vectors of documents as they are; bytes say too little of them."""
        return None if isinstance(half.vectors, Int8Vectors) else half.vectors[positions]

    @staticmethod
    @contextlib.contextmanager
    def writer(directory: Path) -> Iterator[Callable[[np.ndarray], None]]:
        """Writer of vectors, `[documents, dim]` float32."""
        directory.mkdir()
        with open_to_write(directory / _VECTORS) as file:
            yield lambda rows: write_array(file, rows, "<f4")

    def finish(self, directory: Path, documents: DocumentStore) -> dict:
        """Indexes the written vectors, and measures the recall as written."""
        settings = self._settings.resolved(len(documents))
        logging.info("Indexing %d documents: %s", len(documents), settings.kind)
        vectors = write_index(directory, self._dim, settings)
        ranker = opened_ranker(directory, self._dim, settings, documents.hashes)()
        recall = measured_recall(ranker, vectors, self._query_vectors)
        found = f"recall@{recall.depth} {recall.value:.4f} ({recall.measured_by})"
        note = DenseNote(f"{settings.kind}, {found}", self._dim, settings, recall)
        return dataclasses.asdict(note)

    def differences(self, there: dict) -> str:
        """The settings of an index that differ, such as "kind flat"."""
        return self._settings.differences(dense_note(there).settings)


def dense_note(entry: dict) -> DenseNote:
    """An entry of a manifest as `finish` returned it."""
    return record_from_json(DenseNote, entry)


def encode_texts(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts by a loaded tower, `[texts, dim]` float32."""
    import tensorflow as tf  # here, because searches need it no earlier, if at all

    return encode(text=tf.constant(list(texts), tf.string))["vector"].numpy()


def measured_recall(ranker: Ranker, vectors: np.ndarray, query_vectors: QueryVectors) -> Recall:
    """Measures an index against the exact ranking.

    Args:
        vectors: `[documents, dim]` float32, as the document tower made them.
        query_vectors: Called only for an approximate index. Returns `[queries, dim]`, or None to
            measure with vectors of documents instead.
    """
    if ranker.exact:
        return Recall(1.0, _DEPTH, 0, "exact")
    from tf_smoothclir.ops.top_k import recall  # here, because searches need no TensorFlow

    queries, kind = query_vectors(), "queries of the training run"
    if queries is None:
        sample = permutation(ranker.documents, _SEED)[:RECALL_QUERIES]
        queries, kind = np.asarray(vectors[sample]), "documents in place of queries"
    queries = np.ascontiguousarray(queries, np.float32)
    found = (positions for positions, _ in ranker.rank(queries, _DEPTH))
    return Recall(recall(queries, vectors, found, _DEPTH), _DEPTH, len(queries), kind)


def write_index(directory: Path, dim: int, settings: IndexSettings) -> np.ndarray:
    """Indexes the file of vectors in a directory, and deletes it if nothing else will need it.

    Returns:
        The vectors, `[documents, dim]` float32, which stay mapped.
    """
    vectors = _vectors(directory, dim)
    if settings.kind in SCANNED:
        Int8Vectors.write(vectors, directory)
    else:
        VectorIndex.build(settings, vectors).save(directory / _FAISS)
    if settings.kind in OF_INT8:
        (directory / _VECTORS).unlink()
    return vectors


def open_dense_half(directory: Path, entry: dict, hashes: np.ndarray) -> Callable[[], Ranker]:
    """Opens a half by its entry in the manifest; see `opened_ranker`."""
    note = dense_note(entry)
    return opened_ranker(directory, note.dim, note.settings, hashes)


def opened_ranker(
    directory: Path, dim: int, settings: IndexSettings, hashes: np.ndarray
) -> Callable[[], Ranker]:
    """Opens the files of the dense half of an index.

    Args:
        hashes: `[documents]` uint64, of the ids.
    """
    if settings.kind not in SCANNED:
        vectors, file = _vectors(directory, dim), open(directory / _FAISS, "rb")  # noqa: SIM115
        return lambda: Ranker(VectorIndex.load(file, settings), vectors, hashes)
    coded = Int8Vectors.open(directory)
    scored = coded if settings.kind in OF_INT8 else _vectors(directory, dim)
    return lambda: Ranker(VectorIndex.scan(settings, coded), scored, hashes)


def _vectors(directory: Path, dim: int) -> np.ndarray:
    return np.memmap(directory / _VECTORS, "<f4", mode="r").reshape(-1, dim)
