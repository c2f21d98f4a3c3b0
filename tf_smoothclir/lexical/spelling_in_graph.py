"""Unknown words of queries as known ones, in the graph, as two modules read them in Python."""

import tensorflow as tf

from tf_smoothclir.lexical.joined_words import (
    FREQUENT,
    LONGEST,
    SHORTEST,
    SHORTEST_FREQUENT,
    SHORTEST_WORD,
)
from tf_smoothclir.lexical.latin_letters import MARKS
from tf_smoothclir.lexical.nearest_words import (
    BEGIN,
    BITS,
    COMPARED,
    END,
    FEWEST_TRIGRAMS,
    IN_LATIN,
    LARGE,
    Spellings,
)
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import UNKNOWN_ID


class JoinedInGraph(tf.Module):
    """Cuts words into known ones, as `joined_words.parts_of` does."""

    def __init__(self, encoder: TextEncoder):
        super().__init__(name="joined_words")
        self._encoder, self._frequent = encoder, int(FREQUENT * encoder.size)

    def ids(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Which of some words are cut, `[parts]` int64, and the ids of their parts, int32."""
        spec = tf.RaggedTensorSpec([None], tf.int32, ragged_rank=0)
        parts = tf.map_fn(self._parts_of, words, fn_output_signature=spec)
        return parts.value_rowids(), parts.flat_values

    def _parts_of(self, word: tf.Tensor) -> tf.Tensor:
        letters = tf.strings.unicode_split(word, "UTF-8")
        letters = tf.cond(tf.size(letters) > LONGEST, lambda: letters[:0], lambda: letters)
        length, ids = tf.size(letters), self._ids_of_parts(word, letters)
        places = tf.range(length + 1)

        def best_to(end, sums, begins):
            sizes = end - places
            possible = (sums >= 0) & (ids[:, end] != NO_WORD)
            totals = tf.where(possible, sums + sizes * sizes, -1)
            best = tf.argmax(totals, output_type=tf.int32)  # of equal ones the first
            sums = tf.tensor_scatter_nd_update(sums, [[end]], [totals[best]])
            return end + 1, sums, tf.tensor_scatter_nd_update(begins, [[end]], [best])

        sums, begins = tf.where(places == 0, 0, -1), tf.zeros_like(places)
        _, sums, begins = tf.while_loop(
            lambda end, *_: end <= length, best_to, (tf.constant(1), sums, begins)
        )
        _, parts = tf.while_loop(
            lambda end, _: (end > 0) & (sums[length] > 0),
            lambda end, parts: (begins[end], tf.concat([[ids[begins[end], end]], parts], 0)),
            (length, tf.zeros([0], tf.int32)),
            shape_invariants=(tf.TensorShape([]), tf.TensorShape([None])),
        )
        return parts

    def _ids_of_parts(self, word: tf.Tensor, letters: tf.Tensor) -> tf.Tensor:
        """The id of each part of a word, `[begin, end]` int32; `NO_WORD` where none may be cut."""
        are_digits, length = tf.strings.regex_full_match(letters, "[0-9]"), tf.size(letters)
        before, after = are_digits[:-1], are_digits[1:]
        outside = tf.ones([tf.minimum(length, 1)], bool)
        cuts = tf.concat([outside, ~(before & after), [True]], 0)
        changes = tf.concat([outside, before ^ after, [True]], 0)
        begins = tf.range(length + 1)[:, tf.newaxis]
        sizes = tf.transpose(begins) - begins
        is_run = changes[:, tf.newaxis] & changes & (sizes > 0)
        is_long = (sizes >= SHORTEST_FREQUENT) & (length >= SHORTEST_WORD)
        tried = cuts[:, tf.newaxis] & cuts & (is_run | is_long) & (sizes != length)
        tried = tf.where(tried)
        sizes = tf.gather_nd(sizes, tried)
        texts = tf.strings.substr(
            tf.fill(tf.shape(sizes), word), tf.cast(tried[:, 0], tf.int32), sizes, "UTF8_CHAR"
        )
        found = self._encoder.ids(texts)
        may_be_rare = (sizes >= SHORTEST) | tf.gather_nd(is_run, tried)
        is_known = (found > UNKNOWN_ID) & (may_be_rare | (found < self._frequent))
        found = tf.where(is_known, found, NO_WORD)
        return tf.scatter_nd(tried, found, tf.cast([length + 1, length + 1], tf.int64))


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

    def ids(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Which of some words have a nearest one, `[found]` int64, and the ids of these, int32."""
        compared = tf.where(tf.strings.regex_full_match(words, COMPARED))
        words_compared = tf.gather_nd(words, compared)
        trigrams = self._trigrams_of(words_compared)
        in_latin = tf.strings.regex_full_match(words_compared, IN_LATIN)
        # Word by word: a count of trigrams for each word of the vocabulary is large.
        nearest = tf.map_fn(self._id, (trigrams, in_latin), fn_output_signature=tf.int32)
        found = nearest != NO_WORD
        return tf.boolean_mask(compared[:, 0], found), tf.boolean_mask(nearest, found)

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
