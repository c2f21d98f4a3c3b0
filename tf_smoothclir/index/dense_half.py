"""The dense half of an index: vectors by the document tower, and a FAISS index over them.

A directory with

* `vectors`, float32, row after row; not for the kinds int8 and binary;
* for the kinds that are read as a whole for each query, int8 vectors: `codes` and `scales`;
* for HNSW, `faiss`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.encoding import Encode, encode_texts
from tf_smoothclir.index.manifest import DenseNote
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.recall import measured_recall
from tf_smoothclir.index.vector_index import (
    OF_INT8,
    SCANNED,
    IndexSettings,
    VectorIndex,
)
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.two_tower.int8_vectors import Int8Vectors

_VECTORS, _FAISS = "vectors", "faiss"
QueryVectors = Callable[[], np.ndarray | None]


class DenseHalf:
    """Builds the dense half of an index; a `Half`.

    Attributes:
        name: "vectors".
    """

    name = "vectors"

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

    def writer(self, directory: Path) -> VectorWriter:
        """Writer of vectors."""
        return VectorWriter(directory)

    def finish(self, directory: Path, documents: DocumentStore) -> DenseNote:
        """Indexes the written vectors, and measures the recall as written."""
        settings = self._settings.resolved(len(documents))
        logging.info("Indexing %d documents: %s", len(documents), settings.kind)
        vectors = write_index(directory, self._dim, settings)
        ranker = opened_ranker(directory, self._dim, settings, documents.hashes)()
        recall = measured_recall(ranker, vectors, self._query_vectors)
        return DenseNote(self._dim, settings, recall)

    def differences(self, there: DenseNote | None) -> str:
        """The settings of an index that differ, such as "kind flat"."""
        return "no vectors" if there is None else self._settings.differences(there.settings)


class VectorWriter:
    """A context manager that writes vectors, batch by batch."""

    def __init__(self, directory: Path):
        directory.mkdir()
        self._file = open_to_write(directory / _VECTORS)

    def __enter__(self) -> VectorWriter:
        return self

    def __exit__(self, *exc) -> None:
        self._file.close()

    def add(self, rows: np.ndarray) -> None:
        """Appends vectors, `[documents, dim]` float32."""
        write_array(self._file, rows, "<f4")


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
