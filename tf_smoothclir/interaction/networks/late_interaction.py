"""Late interaction: each word of a query looks for its best match in the document.

The score adds up, over the words of a query, how well each is matched (the sum of maxima of
ColBERT; Khattab and Zaharia 2020). Vectors come from word tables, so a document is nothing but the
ids of its words. Four kinds of matches are looked for, and learning decides how much each counts:

* anywhere: the best similarity;
* early: the same, where document words count by their position;
* in place: the same, where they count by how far their position is from that of the query word;
* with its neighbour: the word and the next one match two neighbouring words of the document, as
  well as the worse of the two does. What a pair adds is shared by both.

Each kind is a weighted mean over the words of the query: long queries have no larger scores.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir._compat.keras_api import tf_variable
from tf_smoothclir.interaction.learning import SOFTMAX, LearningSettings
from tf_smoothclir.interaction.networks.base import (
    WordPair,
    WordTables,
    WordVectorNetwork,
    unit_rows,
)
from tf_smoothclir.text.vocabulary import PADDING_ID, UNKNOWN_ID
from tf_smoothclir.towers.average_pooling import PART_BEGINS, part_of_position

KINDS = ("anywhere", "early", "in place", "with its neighbour")
_COUNTS = (0.5, 0.5, 0.5, 1.0)  # of KINDS before learning
_EARLY, _LATE_WEIGHT = 40, 0.05  # before learning, words from this position on have this weight
_FARTHEST = 32  # words that are at least so far from their place count alike
_DECAY = 8.0  # before learning, the weight of a word falls by 1/e each so many places


class LateInteraction(WordVectorNetwork):
    """Adds up the best matches of the words of a query.

    All weights are kept as logarithms.

    Attributes:
        word_weights: `[query words]`, how much each word counts.
        early: `[parts]`, what a document word counts by its position, for "early" and "with its
            neighbour".
        in_place: `[2 * 32 + 1]`, what it counts by its distance, for "in place".
        counts: `[4]`, what each of `KINDS` counts.
    """

    learning = LearningSettings(
        SOFTMAX, learning_rate=0.01, epochs=5, patience=2, vector_rate=0.003, tries_related=True
    )

    def __init__(self, tables: WordTables, word_weights: np.ndarray, **kwargs):
        """`word_weights`: `[query words]`, how much words count before learning, above 0."""
        super().__init__(tables, **kwargs)
        late = np.where(np.array(PART_BEGINS) < _EARLY, 1.0, _LATE_WEIGHT)
        distances = np.abs(np.arange(-_FARTHEST, _FARTHEST + 1))
        self.word_weights = self._start("word_weights", np.log(word_weights))
        self.early = self._start("early", np.log(late))
        self.in_place = self._start("in_place", -distances / _DECAY)
        self.counts = self._start("counts", np.log(_COUNTS))

    @classmethod
    def from_tables(cls, tables, word_weights):
        """The network over word vectors, with the weights of words."""
        return cls(tables, word_weights)

    def _start(self, name: str, value: np.ndarray):
        variable = self.add_weight(name=name, shape=value.shape, initializer="zeros")
        variable.assign(value.astype(np.float32))
        return variable

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The ids themselves: the similarities of all pairs would fill the memory."""
        return query_ids, document_ids

    def score(self, features: tuple[tf.Tensor, ...], training: bool = False) -> tf.Tensor:
        """`[batch]` float32, the scores of pairs with these ids."""
        query_ids, document_ids = features
        similarities = self.similarities(query_ids, document_ids)
        known = tf.cast(self.tables.known_queries(query_ids), tf.float32)
        inside = query_ids < self.word_weights.shape[0]
        weights = tf.gather(tf_variable(self.word_weights), tf.where(inside, query_ids, UNKNOWN_ID))
        weights = known * tf.exp(weights)
        matched = tf.einsum("bn,kbn->bk", weights, tf.stack(self._matches(similarities)))
        totals = tf.reduce_sum(weights, axis=1, keepdims=True)
        means = tf.math.divide_no_nan(matched, totals)
        return tf.linalg.matvec(means, tf.exp(tf_variable(self.counts)))

    def similarities(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tf.Tensor:
        """`[batch, n, m]` float32, cosines above 0; 0 where a word has no vector."""
        return tf.nn.relu(super().similarities(query_ids, document_ids))

    def _matches(self, similarities: tf.Tensor) -> list[tf.Tensor]:
        """The matches of each of `KINDS`, `[batch, n]` each, given `similarities`."""
        n, m = tf.shape(similarities)[1], tf.shape(similarities)[2]
        parts = tf.constant(part_of_position(PART_BEGINS[-1] + 1), tf.int32)
        parts = tf.gather(parts, tf.minimum(tf.range(m), PART_BEGINS[-1]))
        early = tf.exp(tf.gather(tf_variable(self.early), parts))
        distances = tf.range(m) - tf.range(n)[:, tf.newaxis]
        distances = tf.clip_by_value(distances, -_FARTHEST, _FARTHEST) + _FARTHEST
        in_place = tf.exp(tf.gather(tf_variable(self.in_place), distances))
        following = tf.pad(similarities[:, 1:, 1:], [[0, 0], [0, 1], [0, 1]])
        pairs = tf.reduce_max(tf.minimum(similarities, following) * early, axis=2)
        return [
            tf.reduce_max(similarities, axis=2),
            tf.reduce_max(similarities * early, axis=2),
            tf.reduce_max(similarities * in_place, axis=2),
            (pairs + tf.pad(pairs[:, :-1], [[0, 0], [1, 0]])) / 2,
        ]

    def list_scorer(self) -> LateInteractionLists:
        """See `InteractionNetwork.list_scorer`; in NumPy, several times faster."""
        return LateInteractionLists(self)

    def explain(self, query_ids: np.ndarray, document_ids: np.ndarray) -> list[WordPair]:
        """The best match of each query word; see `InteractionNetwork.explain`."""
        return self.list_scorer().explain(query_ids, document_ids)


class LateInteractionLists:
    """Late interaction in NumPy, for one query and many documents at a time."""

    # Documents share most of their words, so each different word is compared with the query once.

    def __init__(self, network: LateInteraction):
        tables = network.tables
        self._queries, self._documents = (unit_rows(table.numpy()) for table in tables.both)
        self._known = self._queries.any(axis=1)
        weights = (
            np.exp(np.asarray(tf_variable(variable)))
            for variable in (network.word_weights, network.early, network.in_place, network.counts)
        )
        self._word_weights, self._early, self._in_place, self._counts = weights

    def __call__(self, query_ids: np.ndarray, document_ids: np.ndarray) -> np.ndarray:
        """`[documents]` float32, of `[n]` and of `[documents, m]` ids padded with 0."""
        places, weights = self._words(query_ids)
        if not weights.sum() or not document_ids.size:
            return np.zeros(len(document_ids), np.float32)
        return self._each(query_ids, document_ids, places, weights).sum(axis=0)

    def explain(self, query_ids: np.ndarray, document_ids: np.ndarray) -> list[WordPair]:
        """The best match of each query word, where words count by position."""
        query_ids, document_ids = np.asarray(query_ids), np.asarray(document_ids)
        places, weights = self._words(query_ids)
        if not weights.sum() or not document_ids.size:
            return []
        added = self._each(query_ids, document_ids[np.newaxis], places, weights)[:, 0]
        similarities = self._similarities(query_ids[places], document_ids[np.newaxis])[:, 0]
        early = self._early[part_of_position(len(document_ids))]
        rank = similarities * early * self._distances(places, len(document_ids))
        best = rank.argmax(axis=1)
        return [
            WordPair(int(place), int(column), float(similarities[row, column]), float(added[row]))
            for row, (place, column) in enumerate(zip(places, best))
            if similarities[row, column] > 0
        ]

    def _words(self, query_ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The places of the words that have a vector, and what these words count."""
        query_ids = np.asarray(query_ids)
        inside = np.where(query_ids < len(self._known), query_ids, PADDING_ID)
        places = np.flatnonzero(self._known[inside])
        return places, self._word_weights[inside[places]]

    def _each(
        self, query_ids: np.ndarray, documents: np.ndarray, places: np.ndarray, weights: np.ndarray
    ) -> np.ndarray:
        """Share of each known query word in each score, `[known, documents]`."""
        similarities = self._similarities(query_ids[places], documents)
        length = similarities.shape[2]
        early, distances = self._early[part_of_position(length)], self._distances(places, length)
        added = self._counts[0] * similarities.max(axis=2)
        added += self._counts[1] * (similarities * early).max(axis=2)
        added += self._counts[2] * (similarities * distances[:, np.newaxis]).max(axis=2)
        pairs = np.minimum(similarities[:-1, :, :-1], similarities[1:, :, 1:]) * early[:-1]
        pairs = pairs.max(axis=2, initial=0)
        pairs[np.diff(places) != 1] = 0  # an unknown word stands between the two
        pairs *= self._counts[3] / 2
        added[:-1] += pairs
        added[1:] += pairs
        return added * (weights / weights.sum())[:, np.newaxis]

    def _similarities(self, words: np.ndarray, documents: np.ndarray) -> np.ndarray:
        """`[words, documents, m]` float32, cosines above 0."""
        inside = np.where(documents < len(self._documents), documents, PADDING_ID)
        different, columns = np.unique(inside, return_inverse=True)
        similarities = np.maximum(self._queries[words] @ self._documents[different].T, 0)
        return similarities[:, columns.reshape(documents.shape)]

    def _distances(self, places: np.ndarray, length: int) -> np.ndarray:
        distances = np.arange(length) - places[:, np.newaxis]
        return self._in_place[np.clip(distances, -_FARTHEST, _FARTHEST) + _FARTHEST]
