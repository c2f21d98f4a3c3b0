"""Lexical scores of a query and a document that no collection has, in the graph."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.lexical.postings import SparseRows
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_postings import SparseLists, owners
from tf_smoothclir.text.tokens import Tokens

_PAIRS_PER_STEP = 32
_DECAYED = 4000  # positions after which all count alike in any profile


class LexicalPairs(tf.Module):
    """Computes what each word of a query adds to the score of a document, from their strings.

    The formulas are those of `lexical.psq` and `LexicalModel`. Only the entries of the translation
    table in the rows of the document's words are looked at.
    """

    def __init__(self, parts: LexicalParts):
        super().__init__(name="pairs")
        model = parts.model
        self._read_query, self._read_document = parts.query_reader, parts.document_reader
        mixed = model.psq.mixed(model.table, parts.spelling)
        self._translations = SparseLists(SparseRows.of(mixed.astype(np.float32)), mixed.shape[1])
        odds = model.psq.odds(model.background).astype(np.float32)
        self._odds = tf.Variable(odds, trainable=False)
        self._weights = tf.Variable(model.weights.astype(np.float32), trainable=False)
        self._passage_words = model.passage_words
        positions = np.arange(parts.text.max_document_tokens + _DECAYED)
        self._length_power, self._mean_length = model.length_power, model.mean_length
        self._profiles = [tf.constant(field(positions)) for field in model.fields]

    def __call__(self, queries: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
        """The scores of pairs, of any bytes, without feedback: `[pairs]` float32."""

        def score_some(begin, scores):
            some = slice(begin, begin + _PAIRS_PER_STEP)
            found = self._scores(queries[some], documents[some])
            return begin + _PAIRS_PER_STEP, tf.concat([scores, found], axis=0)

        _, scores = tf.while_loop(
            lambda begin, _: begin < tf.size(queries),
            score_some,
            (0, tf.zeros([0])),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
        )
        return scores

    def _scores(self, queries: tf.Tensor, documents: tf.Tensor) -> tf.Tensor:
        asked, read = self._read_query(queries), self._read_document(documents)
        starts, owner = tf.zeros_like(read.lengths), tf.range(tf.size(documents))
        if self._passage_words:
            read, starts, owner = _passages(read, self._passage_words)
            begins = tf.cumsum(asked.lengths, exclusive=True)
            asked = _ranges(asked, tf.gather(begins, owner), tf.gather(asked.lengths, owner))
        keys, counts = self._query_words(asked)
        words = tf.cast(keys % self._translations.width, tf.int32)
        scores = tf.zeros(tf.shape(owner))
        found = self._probabilities(keys, read, starts)
        for shares, weights in zip(found, tf.unstack(self._weights)):
            impacts = tf.math.log1p(shares * tf.gather(self._odds, words))
            scores += tf.math.unsorted_segment_sum(
                impacts * tf.gather(weights, words) * counts,
                keys // self._translations.width,
                tf.size(owner),
            )
        lengths = tf.cast(tf.maximum(read.lengths, 1), tf.float32)
        scores *= tf.pow(lengths / self._mean_length, self._length_power)
        return tf.math.segment_max(scores, owner)

    def _query_words(self, tokens: Tokens) -> tuple[tf.Tensor, tf.Tensor]:
        """Ascending keys of the different words of each query, and their counts."""
        known = tokens.ids != NO_WORD
        keys = self._keys(tf.boolean_mask(tokens.texts, known), tf.boolean_mask(tokens.ids, known))
        keys, _, counts = tf.unique_with_counts(tf.sort(keys))
        return keys, tf.cast(counts, tf.float32)

    def _probabilities(self, keys: tf.Tensor, tokens: Tokens, starts: tf.Tensor) -> list[tf.Tensor]:
        """P(w | d) of each word of the queries, for each field, `[keys]` float32."""
        shares = [self._shares(profile, tokens, starts) for profile in self._profiles]
        known = tokens.ids != NO_WORD
        ids, texts = tf.boolean_mask(tokens.ids, known), tf.boolean_mask(tokens.texts, known)
        words, values = self._translations.entries(ids)
        owner = owners(self._translations.lengths(ids))
        wanted = self._keys(tf.gather(texts, owner), words)
        padded = tf.concat([keys, [tf.int64.max]], axis=0)  # every place has a key
        places = tf.raw_ops.LowerBound(sorted_inputs=padded[None], values=wanted[None])[0]
        found = tf.gather(padded, places) == wanted
        places, values = tf.boolean_mask(places, found), tf.boolean_mask(values, found)
        owner = tf.boolean_mask(owner, found)
        return [
            tf.math.unsorted_segment_sum(
                values * tf.gather(tf.boolean_mask(share, known), owner), places, tf.size(keys)
            )
            for share in shares
        ]

    def _shares(self, profile: tf.Tensor, tokens: Tokens, starts: tf.Tensor) -> tf.Tensor:
        """Share of each occurrence of a word in p(t | d), by its position."""
        begins = tf.cumsum(tokens.lengths, exclusive=True) - starts
        positions = tf.range(tf.size(tokens.ids)) - tf.gather(begins, tokens.texts)
        weights = tf.gather(profile, tf.minimum(positions, tf.size(profile) - 1))
        sums = tf.math.unsorted_segment_sum(weights, tokens.texts, tf.size(tokens.lengths))
        return tf.cast(weights / tf.gather(sums, tokens.texts), tf.float32)

    def _keys(self, texts: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        """Key of each text and word, int64."""
        return tf.cast(texts, tf.int64) * self._translations.width + tf.cast(words, tf.int64)


def _passages(tokens: Tokens, longest: int) -> tuple[Tokens, tf.Tensor, tf.Tensor]:
    """Passages as `Words.passages` cuts them, where each starts, and the text of each, int32."""
    step = max(1, longest // 2)
    number = 1 + tf.maximum(0, -(-(tokens.lengths - longest) // step))
    owner = owners(tf.cast(number, tf.int64))
    place = tf.range(tf.size(owner)) - tf.gather(tf.cumsum(number, exclusive=True), owner)
    of_text = tf.gather(tokens.lengths, owner)
    lengths = tf.minimum(of_text, longest)
    starts = tf.minimum(step * place, of_text - lengths)
    begins = tf.gather(tf.cumsum(tokens.lengths, exclusive=True), owner)
    return _ranges(tokens, begins + starts, lengths), starts, owner


def _ranges(tokens: Tokens, begins: tf.Tensor, lengths: tf.Tensor) -> Tokens:
    """Ranges of the ids of some texts as texts of their own."""
    places = tf.ragged.range(begins, begins + lengths)
    texts = tf.cast(places.value_rowids(), tf.int32)
    return Tokens(tf.gather(tokens.ids, places.flat_values), lengths, texts)
