"""Lexical scores of a query and a document that no collection has, in the graph."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import tensorflow as tf

from tf_smoothclir.lexical.postings import SparseRows
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.publishing.exported_lexical import LexicalParts
from tf_smoothclir.publishing.exported_postings import SparseLists, owners
from tf_smoothclir.text.tokens import Tokens

_PAIRS_PER_STEP = 32


class LexicalPairs(tf.Module):
    """Computes what each word of a query adds to the score of a document, from their strings.

    The formulas are those of `lexical.psq` and `LexicalModel`. Only the entries of the translation
    table in the rows of the document's words are looked at.
    """

    def __init__(self, parts: LexicalParts):
        super().__init__(name="pairs")
        model, psq = parts.model, parts.model.psq
        self._read_query, self._read_document = parts.query_reader, parts.document_reader
        mixed = sp.csr_array((1 - psq.beta) * model.table + psq.beta * parts.spelling)
        self._translations = SparseLists(SparseRows.of(mixed.astype(np.float32)), mixed.shape[1])
        odds = (1 - psq.alpha) / psq.alpha / model.background
        self._odds = tf.Variable(odds.astype(np.float32), trainable=False)
        self._weights = tf.Variable(model.weights.astype(np.float32), trainable=False)
        positions = np.arange(parts.text.max_document_tokens)
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
        keys, counts = self._query_words(self._read_query(queries))
        words = tf.cast(keys % self._translations.width, tf.int32)
        scores = tf.zeros(tf.shape(queries))
        read = self._read_document(documents)
        for shares, weights in zip(self._probabilities(keys, read), tf.unstack(self._weights)):
            impacts = tf.math.log1p(shares * tf.gather(self._odds, words))
            scores += tf.math.unsorted_segment_sum(
                impacts * tf.gather(weights, words) * counts,
                keys // self._translations.width,
                tf.size(queries),
            )
        lengths = tf.cast(tf.maximum(read.lengths, 1), tf.float32)
        return scores * tf.pow(lengths / self._mean_length, self._length_power)

    def _query_words(self, tokens: Tokens) -> tuple[tf.Tensor, tf.Tensor]:
        """Ascending keys of the different words of each query, and their counts."""
        known = tokens.ids != NO_WORD
        keys = self._keys(tf.boolean_mask(tokens.texts, known), tf.boolean_mask(tokens.ids, known))
        keys, _, counts = tf.unique_with_counts(tf.sort(keys))
        return keys, tf.cast(counts, tf.float32)

    def _probabilities(self, keys: tf.Tensor, tokens: Tokens) -> list[tf.Tensor]:
        """P(w | d) of each word of the queries, for each field, `[keys]` float32."""
        shares = [self._shares(profile, tokens) for profile in self._profiles]
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

    def _shares(self, profile: tf.Tensor, tokens: Tokens) -> tf.Tensor:
        """Share of each occurrence of a word in p(t | d), by its position."""
        begins = tf.cumsum(tokens.lengths, exclusive=True)
        positions = tf.range(tf.size(tokens.ids)) - tf.gather(begins, tokens.texts)
        weights = tf.gather(profile, positions)
        sums = tf.math.unsorted_segment_sum(weights, tokens.texts, tf.size(tokens.lengths))
        return tf.cast(weights / tf.gather(sums, tokens.texts), tf.float32)

    def _keys(self, texts: tf.Tensor, words: tf.Tensor) -> tf.Tensor:
        """Key of each text and word, int64."""
        return tf.cast(texts, tf.int64) * self._translations.width + tf.cast(words, tf.int64)
