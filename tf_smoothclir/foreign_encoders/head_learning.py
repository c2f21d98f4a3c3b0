"""Learning the head of a foreign encoder: its matrix, with SCS and a ranking loss."""

import time
from typing import Any

import numpy as np
import scipy.sparse as sp
import tensorflow as tf
from absl import logging
from tensorflow import keras

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.foreign_encoders.head import EPSILON, FEWEST_QUERIES, Head
from tf_smoothclir.foreign_encoders.opening import EncodedSet
from tf_smoothclir.lexical.validation import Validation, is_better, quality
from tf_smoothclir.two_tower.similarity import smooth_normalize

_QUERIES, _DOCUMENTS = 256, 4096  # of a step; of small collections all documents
_STEPS = 16  # from one look at validation to the next
_LOOKS, _PATIENCE = 60, 4
_RATE = 0.01
_HARDEST = 40  # documents of grade 0 that join the judged ones of a query


def queries_to_learn_from(retrieval_set: RetrievalSet) -> np.ndarray:
    """The rows of training queries, and of those that nobody judged."""
    return np.flatnonzero(~np.isin(retrieval_set.splits, [SPLITS.index(s) for s in SPLITS[1:]]))


def learn_head(
    encoded: EncodedSet, retrieval_set: RetrievalSet, loss: Any, seed: int
) -> tuple[Head | None, str]:
    """Chooses a head on validation: none, one without a learned matrix, or one that has learned."""
    # `loss` is one of grades and scores, both `[queries, documents]`. The note is for people.
    asked = queries_to_learn_from(retrieval_set)
    if not retrieval_set.judged_splits or len(asked) < FEWEST_QUERIES:
        return None, ""
    begin, validation = time.monotonic(), Validation(retrieval_set, most_queries=None)

    def measured(head: Head | None) -> np.ndarray:
        retriever = (encoded if head is None else head.over(encoded)).retriever(retrieval_set)
        (of_queries,) = validation.per_query(lambda rows: [retriever.scores(rows)])
        return of_queries

    without, plain = measured(None), Head.of(encoded.queries[asked], encoded.documents, seed)
    chosen, by_chosen = max(
        (None, without),
        (plain, measured(plain)),
        key=lambda measured_head: quality(measured_head[1]),
    )
    relevant = retrieval_set.query_rows[retrieval_set.grades > 0]
    trained = np.intersect1d(retrieval_set.queries_in("train"), relevant)
    if min(len(trained), len(validation.query_rows)) >= FEWEST_QUERIES:
        trainer = _Trainer(encoded, retrieval_set, trained, loss, seed, plain)
        learned = Head.of(encoded.queries[asked], encoded.documents, seed, trainer.learned())
        if is_better(by_learned := measured(learned), by_chosen):
            chosen, by_chosen = learned, by_learned
    note = f"{quality(by_chosen):.4f} on validation, {quality(without):.4f} without"
    seconds, kept = time.monotonic() - begin, "kept" if chosen else "left out"
    logging.info("A head on %s: %s (%.1f s), %s", encoded.name, note, seconds, kept)
    return (chosen, note) if chosen else (None, "")


class _Trainer:
    """Trains a matrix on some queries of a set, each of which has a relevant document."""

    def __init__(
        self,
        encoded: EncodedSet,
        retrieval_set: RetrievalSet,
        query_rows: np.ndarray,
        loss: Any,
        seed: int,
        begin: Head,
    ):
        of, dim = retrieval_set, encoded.documents.shape[1]
        self._name, self._set = encoded.name, retrieval_set
        shape = len(of.query_ids), len(of.document_ids)
        self._grades = sp.csr_array((of.grades, (of.query_rows, of.document_rows)), shape=shape)
        self._query_rows = query_rows
        self._queries = encoded.queries - begin.arrays["query"]
        self._documents = encoded.documents - begin.arrays["document"]
        self._layer = keras.layers.Dense(dim, use_bias=False)
        self._layer.build((None, dim))
        self._layer.set_weights([begin.arrays["matrix"]])
        self._optimizer, self._loss = keras.optimizers.Adam(_RATE), loss
        self._random = np.random.default_rng(seed)

    def learned(self) -> np.ndarray:
        """The matrix after which validation got no better, `[dim, dim]` float32."""
        validation, (best,) = Validation(self._set), self._layer.get_weights()
        highest, left = -1.0, _PATIENCE
        for _ in range(_LOOKS):
            measured = validation(self._vectors().retriever(self._set).scores)
            left -= 1
            if measured > highest:
                highest, left, (best,) = measured, _PATIENCE, self._layer.get_weights()
            if not left:
                break
            self._train()
        return best

    def _vectors(self) -> EncodedSet:
        """The set as the matrix has it now, with its hubs."""
        roles = self._queries, self._documents
        projected = (smooth_normalize(self._layer(of_role), EPSILON) for of_role in roles)
        return EncodedSet(self._name, *(vectors.numpy() for vectors in projected))

    def _train(self) -> None:
        """Trains on some queries, each with the documents that they are judged with, and others."""
        of_step, number = min(_QUERIES, len(self._query_rows)), self._grades.shape[1]
        for _ in range(_STEPS):
            queries = self._random.choice(self._query_rows, of_step, replace=False)
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
