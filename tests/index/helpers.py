"""A small world for indexes: documents in memory, and a tower that needs no training."""

import hashlib

import numpy as np
import tensorflow as tf

from tf_smoothclir.data import hashing, tokenized_set
from tf_smoothclir.data.sources import memory, source
from tf_smoothclir.index import builder, dense_half, document_index
from tf_smoothclir.index.index_kind import AUTO
from tf_smoothclir.protocols.text_search import CutPoints
from tf_smoothclir.publishing.export_directory import ExportManifest
from tf_smoothclir.settings.data import DataSettings

DIM = 8
TOWER = ExportManifest(
    role="document",
    version=1,
    pair_id="a" * 64,
    dim=DIM,
    epsilon=1.0,
    thresholds=(0.2, 0.7),
    data=DataSettings(),
    cut_points=CutPoints((0.2, 0.7), ()),
    parts=tokenized_set.ROLES,
)


def in_memory(texts):
    return memory.MemorySource([], list(texts), [])


def document(number, text=None):
    return source.Text(f"d{number}", f"Title {number}", f"text {number}" if text is None else text)


def vector_of(text):
    """A vector of length below 1 that depends on the text alone; zero for the empty text."""
    if not text:
        return np.zeros(DIM, np.float32)
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "little")
    vector = np.random.default_rng(seed).normal(size=DIM)
    return (vector / (np.linalg.norm(vector) + 1)).astype(np.float32)


class Tower:
    """Encodes as `vector_of`; counts the texts, and may fail after some."""

    def __init__(self, fail_after=None):
        self.encoded, self.fail_after = [], fail_after

    def __call__(self, text):
        texts = [value.decode() for value in text.numpy()]
        self.encoded += texts
        if self.fail_after is not None and len(self.encoded) > self.fail_after:
            raise KeyboardInterrupt
        return {"vector": tf.constant(np.array([vector_of(t) for t in texts]))}


def build(path, texts, tower=None, manifest=TOWER, kind=AUTO, *, asked=None, **arguments):
    half = dense_half.DenseHalf(tower or Tower(), DIM, kind, lambda: asked)
    collection = texts if isinstance(texts, source.Source) else in_memory(texts)
    return builder.build_index(path, collection, [half], manifest, **arguments)


def brute_force(texts, query, depth):
    """`(id, score)` by falling score, equal scores by the hash of the id; none of 0."""
    hashes = hashing.hash_ids([text.id for text in texts])
    vectors = np.array([vector_of(text.text) for text in texts], np.float64)
    scores = [np.float32(np.float64(query) @ vector) for vector in vectors]
    order = sorted(range(len(texts)), key=lambda i: (-scores[i], hashes[i]))
    return [(texts[i].id, float(scores[i])) for i in order[:depth] if scores[i]]


def hits_by(index, vectors, depth, mask=None):
    """Hits of query vectors in an index, with the cut points of its manifest."""
    vectors, cut_points = np.asarray(vectors, np.float32), index.manifest.cut_points
    if not isinstance(index, document_index.DocumentIndex):
        return index.search(vectors, depth, cut_points)
    ranked = index.half("dense").rank(vectors, depth, mask)
    return [index.hits(*found, cut_points) for found in ranked]


def found_by(index, query, depth, mask=None):
    (results,) = hits_by(index, [query], depth, mask)
    assert [result.rank for result in results] == list(range(1, len(results) + 1))
    return [(result.id, result.score) for result in results]


def contents(path):
    """Name -> bytes of the files of an index, without those of the manifest, which has times."""
    files = [file for file in path.rglob("*") if file.is_file() and file.name != "manifest.json"]
    return {file.relative_to(path): file.read_bytes() for file in files}


def queries(count, seed=0):
    vectors = np.random.default_rng(seed).normal(size=(count, DIM)).astype(np.float32)
    return vectors / (1 + np.linalg.norm(vectors, axis=1, keepdims=True))
