"""A head: a projection of the vectors of a foreign encoder, learned with SCS and a ranking loss.

With the mean vector of a role, a matrix W of both roles, and ε = 1 as in the paper,

    v(x) = f / (‖f‖ + ε),  f = (x - mean) W,  score(q, d) = v(q) · v(d).

Vectors of an encoder have much in common, so their cosines are all near 1. Without the mean they
are not, and W begins as 10 I: scores then reach from one threshold to the others.
"""

from __future__ import annotations

import dataclasses
import itertools
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import tensorflow as tf
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.foreign_encoders.opening import EncodedSet
from tf_smoothclir.lexical.validation import Validation, is_better, quality
from tf_smoothclir.two_tower.similarity import smooth_normalize

EPSILON = 1.0
ARRAYS = ("query", "document", "matrix")
_SCALE = 10.0
_TEXTS_AT_ONCE = 65_536
_FEWEST_QUERIES = 100  # of validation, to tell whether a head is better
_QUERIES, _DOCUMENTS = 256, 4096  # of a step; of small collections all documents
_STEPS = 16  # from one look at validation to the next
_LOOKS, _PATIENCE = 60, 4
_RATE = 0.01
_HARDEST = 40  # documents of grade 0 that join the judged ones of a query


@dataclasses.dataclass(frozen=True)
class Head:
    """A projection: `matrix`, `[dim, dim]`, and the means `query` and `document`, `[dim]`."""

    arrays: dict[str, np.ndarray]

    def __call__(self, role: str, vectors: tf.Tensor) -> tf.Tensor:
        """Smooth-normalised vectors of unit vectors, both `[texts, dim]` float32."""
        centred = vectors - self.arrays[role]
        return smooth_normalize(tf.matmul(centred, self.arrays["matrix"]), EPSILON)

    def vectors(self, role: str, vectors: np.ndarray) -> np.ndarray:
        """The same as an array, of as many as there are."""
        parts = np.array_split(vectors, 1 + len(vectors) // _TEXTS_AT_ONCE)
        return np.concatenate([self(role, part).numpy() for part in parts])

    def over(self, encoded: EncodedSet) -> EncodedSet:
        """The vectors of a set by this head."""
        of_roles = {"query": encoded.queries, "document": encoded.documents}
        return EncodedSet(encoded.name, *itertools.starmap(self.vectors, of_roles.items()))


def learn_head(
    encoded: EncodedSet, retrieval_set: RetrievalSet, loss: Any, seed: int
) -> tuple[Head | None, str]:
    """Learns a head from the training queries, and a note on it for people."""
    # None where too few queries are judged, or the plain cosine is as good on validation.
    # The loss is one of grades and scores, both `[queries, documents]`.
    if not retrieval_set.judged_splits:
        return None, ""
    begin, best, left = time.monotonic(), (-1.0, None), _PATIENCE
    trainer, validation = _Trainer(encoded, retrieval_set, loss, seed), Validation(retrieval_set)
    if min(len(trainer.rows), len(validation.query_rows)) < _FEWEST_QUERIES:
        return None, ""
    for _ in range(_LOOKS):
        head = trainer.head()
        measured = validation(head.over(encoded).retriever(retrieval_set).scores)
        best, left = ((measured, head), _PATIENCE) if measured > best[0] else (best, left - 1)
        if not left:
            break
        trainer.train()
    head, all_queries = best[1], Validation(retrieval_set, most_queries=None)
    both = [one.retriever(retrieval_set) for one in (head.over(encoded), encoded)]
    with_head, without = all_queries.per_query(lambda rows: (one.scores(rows) for one in both))
    is_kept = is_better(with_head, without)
    note = f"{quality(with_head):.4f} on validation, {quality(without):.4f} without"
    seconds, kept = time.monotonic() - begin, "kept" if is_kept else "left out"
    logging.info("A head on %s: %s (%.1f s), %s", encoded.name, note, seconds, kept)
    return (head, note) if is_kept else (None, "")


class _Trainer:
    """Trains a matrix on the training queries of a set that have a relevant document, `rows`."""

    def __init__(self, encoded: EncodedSet, retrieval_set: RetrievalSet, loss: Any, seed: int):
        of, dim = retrieval_set, encoded.documents.shape[1]
        shape = len(of.query_ids), len(of.document_ids)
        self._grades = sp.csr_array((of.grades, (of.query_rows, of.document_rows)), shape=shape)
        train = of.queries_in("train")
        self.rows = train[(self._grades.max(axis=1).toarray().ravel() > 0)[train]]
        self._means = encoded.queries[train].mean(axis=0), encoded.documents.mean(axis=0)
        self._queries = encoded.queries - self._means[0]
        self._documents = encoded.documents - self._means[1]
        self._layer = keras.layers.Dense(dim, use_bias=False)
        self._layer.build((None, dim))
        self._layer.set_weights([_SCALE * np.eye(dim)])
        self._optimizer, self._loss = keras.optimizers.Adam(_RATE), loss
        self._random = np.random.default_rng(seed)

    def head(self) -> Head:
        """The head as it is now."""
        (matrix,) = self._layer.get_weights()
        return Head(dict(zip(ARRAYS, (*self._means, matrix))))

    def train(self) -> None:
        """Trains on some queries, each with the documents that they are judged with, and others."""
        of_step, number = min(_QUERIES, len(self.rows)), self._grades.shape[1]
        for _ in range(_STEPS):
            queries = self._random.choice(self.rows, of_step, replace=False)
            documents = np.arange(number)
            if number > _DOCUMENTS:
                others = self._random.integers(number, size=_DOCUMENTS)
                documents = np.union1d(self._grades[queries].indices, others)
            grades = self._grades[queries][:, documents].toarray().astype(np.int32)
            self._step(self._queries[queries], self._documents[documents], grades)

    @tf.function(
        autograph=False,
        input_signature=[
            tf.TensorSpec([None, None], tf.float32),
            tf.TensorSpec([None, None], tf.float32),
            tf.TensorSpec([None, None], tf.int32),
        ],
    )
    def _step(self, queries, documents, grades):
        """One step by the judged documents of each query and the hardest others."""
        weights = self._layer.trainable_weights
        with tf.GradientTape() as tape:
            vectors = [smooth_normalize(self._layer(one), EPSILON) for one in (queries, documents)]
            scores = tf.matmul(*vectors, transpose_b=True)
            judged = tf.reduce_max(tf.math.count_nonzero(grades, axis=1, dtype=tf.int32))
            listed = tf.minimum(judged + _HARDEST, tf.shape(scores)[1])
            _, listed = tf.math.top_k(tf.where(grades > 0, 2.0, scores), listed)
            labels, scores = (tf.gather(of, listed, batch_dims=1) for of in (grades, scores))
            loss = self._loss(labels, scores)
        self._optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
