"""Networks that read a query and a document together: their contract, and word tables."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import tensorflow as tf
from tensorflow import keras

from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID


class WordPair(NamedTuple):
    """A word of a query and the word of a document that matches it best."""

    query_position: int  # among the ids of the query
    document_position: int
    similarity: float  # cosine of their vectors, or what the network has in its place
    weight: float  # what it adds to a score that is a sum over query words; else the similarity


class InteractionNetwork(keras.layers.Layer):
    """Base of all networks.

    Scores depend on nothing but the words of the pair: not on padding, nor on the other pairs of a
    batch. Texts without words, and unknown words, have finite scores and gradients.

    Attributes:
        features_once: Whether `features` have no trained part and are few, so that learning
            computes them once for all pairs. Else it computes them in every step.
        learning: The `LearningSettings` of a network that is a plug-in.
    """

    features_once = False
    learning: ClassVar[Any] = None

    @classmethod
    def from_tables(cls, tables: Any, word_weights: np.ndarray) -> Self:
        """Returns the network over word vectors.

        Args:
            tables: The `WordTables` of both languages.
            word_weights: `[query words]` float32, how rare each word is, for networks that use it.
        """
        return cls(tables)

    @property
    def word_vectors(self) -> list[tf.Variable]:
        """Tables of word vectors that learning changes, besides `trainable_weights`."""
        return []

    @abc.abstractmethod
    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> Any:
        """Features of pairs, the input of `score`.

        Args:
            query_ids: `[batch, n]` int32, padded by 0 at the end.
            document_ids: `[batch, m]` int32, the same.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def score(self, features: Any, training: bool = False) -> tf.Tensor:
        """`[batch]` float32, given what `features` returned."""
        raise NotImplementedError

    def similarities(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tf.Tensor:
        """`[batch, n, m]` float32, how alike two words are; 0 at padding."""
        raise NotImplementedError

    def call(self, inputs, training: bool = False):
        """Scores pairs, `(query_ids, document_ids)`; returns `[batch]` float32."""
        return self.score(self.features(*inputs), training)

    def list_scorer(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """Scorer of the documents of one query, by the weights as they are now.

        It takes `[n]` query ids and `[documents, m]` document ids, both padded with 0 at the end,
        and returns `[documents]` float32.
        """
        score = tf.function(self.call, reduce_retracing=True)

        def scores(query_ids: np.ndarray, document_ids: np.ndarray) -> np.ndarray:
            queries = np.broadcast_to(query_ids, (len(document_ids), len(query_ids)))
            return score((tf.constant(queries), tf.constant(document_ids))).numpy()

        return scores

    def explain(self, query_ids: np.ndarray, document_ids: np.ndarray) -> list[WordPair]:
        """The best match of each query word that has one, in the order of the query.

        Args:
            query_ids: `[n]` int.
            document_ids: `[m]` int.
        """
        ids = np.asarray(query_ids, np.int32), np.asarray(document_ids, np.int32)
        if not all(of_text.size for of_text in ids):
            return []
        similarities = self.similarities(
            *(tf.constant(of_text[np.newaxis]) for of_text in ids)
        ).numpy()[0]
        best = similarities.argmax(axis=1)
        return [
            WordPair(
                place, int(best[place]), value := float(similarities[place, best[place]]), value
            )
            for place in np.flatnonzero((ids[0] != PADDING_ID) & (similarities.max(axis=1) > 0))
        ]


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """`[ids, dim]` of length 1, and zeros for padding, unknown words and zero vectors."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, norms, out=np.zeros_like(vectors, np.float32), where=norms > 0)
    unit[: UNKNOWN_ID + 1] = 0
    return unit


class WordTables:
    """The word vectors of both languages, as vectors of length 1."""

    # Padding, unknown words, words without a vector and ids beyond the end have zeros, and are left
    # out everywhere. `trained`: the variables among the two that learning may change.

    def __init__(self, queries: np.ndarray, documents: np.ndarray, *, trained: bool = False):
        """Normalises `[words, dim]` vectors; a row of zeros is no vector."""
        if queries.shape[1] != documents.shape[1]:
            raise ValueError(
                f"query vectors have {queries.shape[1]} numbers, document vectors"
                f" {documents.shape[1]}. Give vectors of one space."
            )
        given = (queries,) if queries is documents else (queries, documents)
        rows = [unit_rows(np.asarray(table, np.float32)) for table in given]
        kept = [tf.Variable(table) if trained else tf.constant(table) for table in rows]
        self.queries, self.documents = kept[0], kept[-1]
        self.trained: list[tf.Variable] = kept if trained else []
        self._known_queries = tf.constant(rows[0].any(axis=1))

    @property
    def both(self) -> tuple[tf.Tensor, tf.Tensor]:
        """The vectors of query words and of document words."""
        return self.queries, self.documents

    @property
    def dim(self) -> int:
        """Length of the vectors."""
        return self.queries.shape[1]

    def query_vectors(self, ids: tf.Tensor) -> tf.Tensor:
        """The vectors of query words, `[..., dim]`."""
        return self._vectors(self.queries, ids)

    def known_queries(self, ids: tf.Tensor) -> tf.Tensor:
        """Mask of query words that have a vector, bool, in the shape of `ids`."""
        return tf.gather(self._known_queries, _inside(self.queries, ids))

    def document_vectors(self, ids: tf.Tensor) -> tf.Tensor:
        """The vectors of document words, `[..., dim]`."""
        return self._vectors(self.documents, ids)

    def _vectors(self, table, ids: tf.Tensor) -> tf.Tensor:
        vectors = tf.gather(table, _inside(table, ids))
        return tf.math.l2_normalize(vectors, axis=-1) if self.trained else vectors


class WordVectorNetwork(InteractionNetwork):
    """Base of the networks over word vectors."""

    def __init__(self, tables: WordTables, **kwargs):
        super().__init__(**kwargs)
        self.tables = tables

    @property
    def word_vectors(self) -> list[tf.Variable]:
        """See `InteractionNetwork`."""
        return self.tables.trained

    def similarities(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tf.Tensor:
        """`[batch, n, m]` float32, the cosines of words; 0 where a word has no vector."""
        vectors = self.tables.query_vectors(query_ids), self.tables.document_vectors(document_ids)
        return tf.matmul(*vectors, transpose_b=True)


def _inside(table: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Ids, with padding in place of those beyond the end of a table."""
    return tf.where(ids < table.shape[0], ids, PADDING_ID)
