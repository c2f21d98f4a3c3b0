"""Reader of texts as words of the lexical models, in the graph; `words` numbers them.

Evaluation, indexing, search and exported models all read texts with it.
"""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.encoder.word_evidence import NOTHING, SPELLING, WORDS
from tf_smoothclir.lexical.nearest_words import NearestWords
from tf_smoothclir.lexical.new_words import BYTES, NONE, spread
from tf_smoothclir.lexical.spelling_in_graph import (
    JoinedInGraph,
    NearestInGraph,
    SwappedInGraph,
    joined_with_neighbours,
)
from tf_smoothclir.lexical.words import FEWEST_BEFORE_SIGN, NO_WORD, Words, read_vocabularies
from tf_smoothclir.text.evidence import WORD, Evidence, evidence_of
from tf_smoothclir.text.tokens import TextEncoder, Tokens
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils.devices import on_the_cpu
from tf_smoothclir.utils.parallel import map_in_threads, text_batches


class TextReader(tf.Module):
    """Reads queries or documents, by their role."""

    # Documents have ids of their vocabulary. Queries have those of theirs, and after them those of
    # words that only documents have. New words, in documents and of those in queries, come last.

    def __init__(
        self,
        vocabulary_dir: str | os.PathLike,
        role: str,
        max_tokens: int,
        pretokenized: bool = False,
        new_words: np.ndarray = NONE,
    ):
        """Takes the hashes of the new words that queries look for, sorted."""
        super().__init__(name=f"{role}_reader")
        self.max_tokens, self.pretokenized = max_tokens, pretokenized
        self._encoders = [
            TextEncoder(Path(vocabulary_dir, f"{name}.txt"), max_tokens, pretokenized)
            for name in ROLES[ROLES.index(role) :]
        ]
        self._sizes = [encoder.size for encoder in self._encoders]
        self.size = sum(self._sizes)
        vocabularies = read_vocabularies(Path(vocabulary_dir))
        self._hashes = spread(sum(map(len, vocabularies)))
        self._is_document, self._new = role == "document", None
        if len(new_words):
            self._new = tf.Variable(new_words.astype(np.int64), trainable=False)
        is_compared = role == "query" and vocabularies[0] == vocabularies[1]
        self._known_ones = []
        if is_compared:
            nearest = map(NearestInGraph, NearestWords(vocabularies[0]).spellings)
            own = self._encoders[0]
            self._known_ones = [JoinedInGraph(own), *nearest, SwappedInGraph(own)]

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.string)])
    def __call__(self, texts: tf.Tensor) -> Tokens:
        """Numbers the words of texts, `[batch]` string of any bytes; `NO_WORD` for unknown ones."""
        return self.read(self._encoders[0].words(texts))[0]

    def read(self, words: tf.RaggedTensor) -> tuple[Tokens, Evidence]:
        """The ids of words and what is known of them, in a graph."""
        ids = self._ids(words)
        ids = tf.where(ids == NO_WORD, self._new_ids(words.flat_values), ids)
        evidence = tf.where(ids < self._sizes[0], WORDS, SPELLING)
        known = tf.where(ids == NO_WORD, NOTHING, evidence)
        if self._is_document:
            return Tokens.of_ragged(words.with_flat_values(ids)), evidence_of(words, known)
        if self._known_ones:
            joined = joined_with_neighbours(words, self._encoders[0])
            is_joined = (known == NOTHING) & (joined > UNKNOWN_ID)
            ids, known = tf.where(is_joined, joined, ids), tf.where(is_joined, SPELLING, known)
        places, ids, known = self._as_known_ones(words.flat_values, ids, known)
        rows = tf.gather(words.value_rowids(), places)
        ids = tf.where(tf.gather(_counts(words), places), ids, NO_WORD)
        ids = tf.where(_are_firsts(rows, ids), ids, NO_WORD)
        ids = tf.RaggedTensor.from_value_rowids(ids, rows, words.nrows(), validate=False)
        return Tokens.of_ragged(ids), evidence_of(words, known)

    def _as_known_ones(
        self, words: tf.Tensor, ids: tf.Tensor, known: tf.Tensor
    ) -> tuple[tf.Tensor, tf.Tensor, tf.Tensor]:
        """Ids of words, of unknown ones those they are read as, and what is known of each word."""
        # The first result says which word each id is of: an unknown one may be read as several.
        places = tf.range(tf.size(ids))
        for known_ones in self._known_ones:
            unknown = tf.where(known == NOTHING)
            rows, found = known_ones.ids(tf.gather_nd(words, unknown))
            read = tf.gather(unknown, rows)
            spelled = tf.fill(tf.shape(found), SPELLING)
            known = tf.tensor_scatter_nd_update(known, read, spelled)
            places = tf.concat([places, tf.cast(read[:, 0], tf.int32)], 0)
            ids = tf.concat([ids, found], 0)
        # The ids of unknown words give way to those.
        kept = (ids != NO_WORD) | (tf.gather(known, places) == NOTHING)
        places, ids = tf.boolean_mask(places, kept), tf.boolean_mask(ids, kept)
        order = tf.argsort(places, stable=True)
        return tf.gather(places, order), tf.gather(ids, order), known

    def words(self, texts: Iterable[str], *, with_new: bool = False) -> Words:
        """Reads texts, on all cores; new words have the numbers of their hashes, or none."""
        batches = map(_strings, text_batches(texts))
        return self._joined(map_in_threads(on_the_cpu(self), batches), with_new)

    def batch(self, texts: Sequence[str], *, with_new: bool = False) -> Words:
        """Reads a few texts at once, in this thread."""
        return self._joined([self(_strings(texts))], with_new)

    def _ids(self, words: tf.RaggedTensor) -> tf.Tensor:
        ids, begin = tf.fill([tf.size(words.flat_values)], NO_WORD), self.size
        for encoder, size in zip(self._encoders[::-1], self._sizes[::-1]):  # the first one counts
            begin -= size
            known = encoder.ids(words.flat_values)
            ids = tf.where(known > UNKNOWN_ID, begin + known, ids)
        return ids

    def _new_ids(self, words: tf.Tensor) -> tf.Tensor:
        """The ids of words that are in no vocabulary, `[words]` int32."""
        if not self._is_document and self._new is None:
            return tf.fill(tf.shape(words), NO_WORD)
        hashed = tf.strings.to_hash_bucket_fast(tf.strings.substr(words, 0, BYTES), self._hashes)
        if self._is_document:
            numbers, is_new = hashed, tf.strings.regex_full_match(words, WORD)
        else:
            numbers = tf.cast(tf.searchsorted(self._new, hashed), tf.int64)
            numbers = tf.minimum(numbers, tf.size(self._new, tf.int64) - 1)
            is_new = tf.gather(self._new, numbers) == hashed
        return tf.where(is_new, self.size + tf.cast(numbers, tf.int32), NO_WORD)

    def _joined(self, batches: Iterable[Tokens], with_new: bool = False) -> Words:
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(1, np.int64)]
        for tokens in batches:
            ids.append(tokens.ids.numpy())
            lengths.append(tokens.lengths.numpy())
        read = np.concatenate(ids)
        if not with_new:
            read[read >= self.size] = NO_WORD
        return Words(read, np.cumsum(np.concatenate(lengths)), self.size)


def _counts(words: tf.RaggedTensor) -> tf.Tensor:
    """Which words, `[words]` bool, are none of the signs that do not count in queries."""
    is_word = tf.strings.regex_full_match(words.flat_values, WORD)
    of_texts = tf.reduce_sum(words.with_flat_values(tf.cast(is_word, tf.int32)), axis=1)
    lasts = tf.boolean_mask(words.row_limits() - 1, of_texts >= FEWEST_BEFORE_SIGN)
    return tf.tensor_scatter_nd_update(is_word, lasts[:, tf.newaxis], tf.ones_like(lasts, tf.bool))


def _are_firsts(rows: tf.Tensor, ids: tf.Tensor) -> tf.Tensor:
    """Which ids, `[words]` bool, are the first of their kind in their rows."""
    places = tf.range(tf.size(ids))
    _, of_same = tf.unique(tf.bitcast(tf.stack([tf.cast(rows, tf.int32), ids], 1), tf.int64))
    return tf.gather(tf.math.unsorted_segment_min(places, of_same, tf.size(ids)), of_same) == places


def _strings(texts: Sequence[str]) -> tf.Tensor:
    return tf.constant(list(texts), tf.string)
