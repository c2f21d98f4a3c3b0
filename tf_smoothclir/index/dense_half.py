"""The dense half of an index: vectors by the document tower, and a FAISS index over them.

A directory with

* `vectors`, float32, row after row;
* for a flat index, `codes`, `scales` and `longest`; for HNSW, `faiss`.
"""

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
from absl import logging

from tf_smoothclir.data.hashing import permutation
from tf_smoothclir.data.sources.source import Text
from tf_smoothclir.index.documents import DocumentStore
from tf_smoothclir.index.index_kind import AUTO, FLAT, kind_for
from tf_smoothclir.index.ranker import Ranker
from tf_smoothclir.index.vector_index import FlatIndex, HnswIndex
from tf_smoothclir.storage.files import open_to_write, write_array
from tf_smoothclir.storage.random_access import StoredMatrix
from tf_smoothclir.utils.records import record_from_json

RECALL_QUERIES, _DEPTH, _SEED = 1000, 10, 13  # of the recall
_VECTORS, _FAISS = "vectors", "faiss"
Encode = Callable[..., dict]
QueryVectors = Callable[[], np.ndarray | None]


@dataclasses.dataclass(frozen=True)
class Recall:
    """Recall of an index: the share of the exact ranking that it finds."""

    value: float  # share of the exact best `depth` documents that are found, on average
    depth: int
    queries: int  # how many queries it was measured with; 0 for an exact index
    measured_by: str


@dataclasses.dataclass(frozen=True)
class DenseNote:
    """Entry of a manifest about vectors."""

    summary: str
    dim: int
    kind: str  # one of `index_kind.KINDS`
    recall: Recall


class DenseHalf:
    """Builds the dense half of an index; a `Half`."""

    name = "dense"

    def __init__(
        self, encode: Encode, dim: int, kind: str = AUTO, query_vectors: QueryVectors = lambda: None
    ):
        """Takes what encodes, and query vectors (None: those of documents) for the recall."""
        self._encode, self._dim = encode, dim
        self._kind, self._query_vectors = kind, query_vectors

    def encode(self, documents: Sequence[Text]) -> np.ndarray:
        """The vectors of documents, `[documents, dim]` float32."""
        return encode_texts(self._encode, [document.text for document in documents])

    @staticmethod
    def kept(half: Ranker, positions: np.ndarray, documents: Sequence[Text]) -> np.ndarray:
        """Vectors of documents as they are."""
        return half.vectors[positions]

    @staticmethod
    @contextlib.contextmanager
    def writer(directory: Path) -> Iterator[Callable[[np.ndarray], None]]:
        """Writer of vectors, `[documents, dim]` float32."""
        directory.mkdir()
        with open_to_write(directory / _VECTORS) as file:
            yield lambda rows: write_array(file, rows, "<f4")

    def finish(self, directory: Path, documents: DocumentStore) -> dict:
        """Indexes the written vectors, and measures the recall as written."""
        kind = kind_for(len(documents), self._kind)
        logging.info("Indexing %d documents: %s", len(documents), kind)
        write_index(directory, self._dim, kind)
        ranker = opened_ranker(directory, self._dim, kind, documents.hashes)()
        recall = Recall(1.0, _DEPTH, 0, "exact")
        if kind != FLAT:
            recall = measured_recall(ranker, self._query_vectors)
        summary = f"{kind}, recall@{recall.depth} {recall.value:.4f} ({recall.measured_by})"
        return dataclasses.asdict(DenseNote(summary, self._dim, kind, recall))

    def differences(self, there: dict) -> str:
        """The kind of an index that is another one, such as "kind flat"."""
        kind = dense_note(there).kind
        return "" if self._kind in (AUTO, kind) else f"kind {kind}"


def dense_note(entry: dict) -> DenseNote:
    """An entry of a manifest as `finish` returned it."""
    return record_from_json(DenseNote, entry)


def encode_texts(encode: Encode, texts: Sequence[str]) -> np.ndarray:
    """The vectors of texts by a loaded tower, `[texts, dim]` float32."""
    import tensorflow as tf  # here, because searches need it no earlier, if at all

    return encode(text=tf.constant(list(texts), tf.string))["vector"].numpy()


def measured_recall(ranker: Ranker, query_vectors: QueryVectors) -> Recall:
    """Measures an approximate index against the exact ranking."""
    from tf_smoothclir.ops.top_k import recall  # here, because searches need no TensorFlow

    queries, kind = query_vectors(), "queries of the training run"
    if queries is None:
        sample = permutation(ranker.documents, _SEED)[:RECALL_QUERIES]
        queries, kind = np.asarray(ranker.vectors[sample]), "documents in place of queries"
    queries = np.ascontiguousarray(queries, np.float32)
    ranked = (positions for positions, _ in ranker.rank(queries, _DEPTH))
    return Recall(recall(queries, ranker.vectors, ranked, _DEPTH), _DEPTH, len(queries), kind)


def write_index(directory: Path, dim: int, kind: str) -> None:
    """Indexes the file of vectors in a directory."""
    vectors = _vectors(directory, dim)
    if kind == FLAT:
        FlatIndex.write(vectors, directory)
    else:
        HnswIndex.write(vectors, directory / _FAISS)


def open_dense_half(directory: Path, entry: dict, hashes: np.ndarray) -> Callable[[], Ranker]:
    """Opens a half by its entry in the manifest; see `opened_ranker`."""
    note = dense_note(entry)
    return opened_ranker(directory, note.dim, note.kind, hashes)


def opened_ranker(directory: Path, dim: int, kind: str, hashes: np.ndarray) -> Callable[[], Ranker]:
    """Opens the files of the dense half of an index; `hashes`: `[documents]` uint64, of the ids."""
    vectors = _vectors(directory, dim)
    if kind == FLAT:
        opened = FlatIndex.opened(directory)
        return lambda: Ranker(FlatIndex(*opened), vectors, hashes)
    file = open(directory / _FAISS, "rb")  # noqa: SIM115
    return lambda: Ranker(HnswIndex(file), vectors, hashes)


def _vectors(directory: Path, dim: int) -> StoredMatrix:
    return StoredMatrix(directory / _VECTORS, "<f4", dim)
