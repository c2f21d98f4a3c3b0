"""The word vectors of two languages, frozen or trained, and networks over them."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.interaction.networks.base import InteractionNetwork, unit_rows
from tf_smoothclir.text.vocabulary import PADDING_ID


class WordTables:
    """The word vectors of both languages, as vectors of length 1.

    Padding, unknown words, words without a vector and ids beyond the end of a table have zeros;
    they are left out everywhere.

    Attributes:
        queries: `[query words, dim]` float32; of length 1 if they are frozen.
        documents: `[document words, dim]` float32; the same object if it was given twice.
        trained: The variables among the two that learning may change; none if they are frozen.
    """

    def __init__(self, queries: np.ndarray, documents: np.ndarray, *, trained: bool = False):
        """Normalises the vectors.

        Args:
            queries: `[query words, dim]`; a row of zeros is no vector.
            documents: `[document words, dim]`, the same.
        """
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
        found = tf.gather(table, _inside(table, ids))
        return tf.math.l2_normalize(found, axis=-1) if self.trained else found


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
