"""Queries of a search model: read once, for ranking and for their evidence."""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_tower import ExportedTower
from tf_smoothclir.text.evidence_levels import NOTHING
from tf_smoothclir.text.tokenizer import tokenize
from tf_smoothclir.text.tokens import Tokens


class QueriesRead(NamedTuple):
    """Queries as the halves of a retriever see them."""

    words: Tokens | None  # of the lexical model; None without one
    # `[batch, dim]` float32, of the query tower; None where it does not rank.
    vectors: tf.Tensor | None
    levels: tf.Tensor  # `[batch]` int32, the best evidence that either has of each query


class SearchedQueries(tf.Module):
    """Reads queries for a search model, in the graph."""

    def __init__(self, tower: ExportedTower | None, lexical: LexicalParts | None):
        super().__init__(name="queries")
        self._tower = tower
        self._reader = lexical and lexical.query_reader

    def __call__(self, queries: tf.Tensor) -> QueriesRead:
        """Reads queries, `[batch]` string, any bytes."""
        words = vectors = None
        levels = tf.fill([tf.size(queries)], NOTHING)
        readers = [self._reader, self._tower and self._tower.encoder]
        tokens = tokenize(queries, max(reader.max_tokens for reader in readers if reader))
        if self._reader is not None:
            words, known = self._reader.read(tokens[:, : self._reader.max_tokens])
            levels = known.levels
        if self._tower is not None:
            vectors, known = self._tower.read(tokens[:, : self._tower.encoder.max_tokens])
            levels = tf.maximum(levels, known.levels)  # n-grams, where no word is known
        return QueriesRead(words, vectors, levels)
