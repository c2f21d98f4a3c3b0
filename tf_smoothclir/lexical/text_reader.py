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
from tf_smoothclir.lexical.latin_letters import MARKS
from tf_smoothclir.lexical.nearest_words import (
    BEGIN,
    BITS,
    COMPARED,
    END,
    FEWEST_TRIGRAMS,
    IN_LATIN,
    LARGE,
    NearestWords,
    Spellings,
)
from tf_smoothclir.lexical.new_words import BYTES, NONE, spread
from tf_smoothclir.lexical.words import FEWEST_BESIDE_SIGNS, NO_WORD, Words, read_vocabularies
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
        nearest = NearestWords(vocabularies[0] if is_compared else [])
        self._nearest = list(map(NearestInGraph, nearest.spellings))

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
        for spellings in self._nearest:
            unknown = tf.where(ids == NO_WORD)
            nearest = spellings.ids(tf.gather_nd(words.flat_values, unknown))
            ids = tf.tensor_scatter_nd_update(ids, unknown, nearest)
            evidence = tf.where(nearest == NO_WORD, NOTHING, SPELLING)
            known = tf.tensor_scatter_nd_update(known, unknown, evidence)
        if not self._is_document:
            ids = tf.where(_counts(words), ids, NO_WORD)
        return Tokens.of_ragged(words.with_flat_values(ids)), evidence_of(words, known)

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
    """Which words, `[words]` bool, are the first of their kind, and no signs in short queries."""
    rows, values = words.value_rowids(), words.flat_values
    number = tf.size(values)
    _, of_same = tf.unique(tf.strings.join([tf.strings.as_string(rows), values], " "))
    firsts = tf.math.unsorted_segment_min(tf.range(number), of_same, number)
    is_word = tf.strings.regex_full_match(values, WORD)
    of_rows = tf.math.unsorted_segment_sum(tf.cast(is_word, tf.int32), rows, words.nrows())
    has_signs = tf.gather(of_rows >= FEWEST_BESIDE_SIGNS, rows)
    return (is_word | has_signs) & (tf.gather(firsts, of_same) == tf.range(number))


class NearestInGraph(tf.Module):
    """Finds the nearest words of a vocabulary, as `Spellings` does."""

    def __init__(self, nearest: Spellings):
        super().__init__(name="nearest_words")
        arrays = nearest.trigrams, nearest.ends, nearest.words, nearest.sizes, nearest.letters
        self._trigrams, self._ends, self._words, self._sizes, self._letters = (
            tf.Variable(array, trainable=False) for array in arrays
        )
        self._least, self._in_latin = nearest.least, None
        if nearest.in_latin is not None:
            self._in_latin = tf.Variable(nearest.in_latin, trainable=False)

    def ids(self, words: tf.Tensor) -> tf.Tensor:
        """The ids of the nearest words, `[words]` int32; `NO_WORD` where there is none."""
        compared = tf.where(tf.strings.regex_full_match(words, COMPARED))
        words_compared = tf.gather_nd(words, compared)
        trigrams = self._trigrams_of(words_compared)
        in_latin = tf.strings.regex_full_match(words_compared, IN_LATIN)
        # Word by word: a count of trigrams for each word of the vocabulary is large.
        nearest = tf.map_fn(self._id, (trigrams, in_latin), fn_output_signature=tf.int32)
        none = tf.fill(tf.shape(words), NO_WORD)
        return tf.tensor_scatter_nd_update(none, compared, nearest)

    def _trigrams_of(self, words: tf.Tensor) -> tf.RaggedTensor:
        codes = tf.strings.unicode_decode(words, "UTF-8")
        values, size = codes.flat_values, self._letters.shape[0]
        letters = tf.gather(self._letters, tf.minimum(values, size - 1))
        values = tf.where(values < size, letters, tf.cast(values, tf.int64))
        codes = codes.with_flat_values(values)
        codes = tf.ragged.boolean_mask(codes, (codes < MARKS[0]) | (codes >= MARKS[1]))
        one = tf.ones([codes.nrows(), 1], tf.int64)
        marked = tf.concat([BEGIN * one, codes, END * one], axis=1)
        firsts = tf.ragged.range(marked.row_starts(), marked.row_limits() - 2)
        numbers = tf.zeros_like(firsts.flat_values)
        for place in range(3):
            numbers = numbers * 2**BITS + tf.gather(marked.flat_values, firsts.flat_values + place)
        return firsts.with_flat_values(numbers)

    def _id(self, word: tuple[tf.Tensor, tf.Tensor]) -> tf.Tensor:
        """The id of the nearest word of one with `[trigrams]` int64, perhaps in Latin letters."""
        trigrams, in_latin = word
        places = tf.searchsorted(self._trigrams, trigrams)
        places = tf.minimum(places, tf.size(self._trigrams) - 1)
        places = tf.boolean_mask(places, tf.gather(self._trigrams, places) == trigrams)
        ends = tf.gather(self._ends, places), tf.gather(self._ends, places + 1)
        entries = tf.gather(self._words, tf.ragged.range(*ends).flat_values)
        ones = tf.ones_like(entries, tf.float32)
        common = tf.math.unsorted_segment_sum(ones, entries, tf.size(self._sizes))
        if self._in_latin is not None:
            common = tf.where(self._in_latin == in_latin, 0.0, common)
        number = tf.size(trigrams)
        is_short, are_short = number < FEWEST_TRIGRAMS, self._sizes < FEWEST_TRIGRAMS
        sizes = tf.where(are_short & ~is_short, LARGE, self._sizes)
        shares = 2 * common / tf.cast(sizes + number, tf.float32)
        share, best = tf.math.top_k(shares, 1)  # of equal ones the first
        return tf.where(share >= tf.where(is_short, 1.0, self._least), best, NO_WORD)[0]


def _strings(texts: Sequence[str]) -> tf.Tensor:
    return tf.constant(list(texts), tf.string)
