"""Unknown words of queries as known ones, in the graph, as two modules read them in Python."""

import tensorflow as tf

from tf_smoothclir.lexical.joined_words import (
    FEWEST_CUT,
    FREQUENT,
    MOST_CUT,
    SHORTEST,
    SHORTEST_FREQUENT,
)
from tf_smoothclir.lexical.latin_letters import MARKS
from tf_smoothclir.lexical.nearest_words import (
    BEGIN,
    BITS,
    COMPARED,
    END,
    FEWEST_TRIGRAMS,
    IN_LATIN,
    LEAST_OF_PAIRS,
    WITHOUT_VOWELS,
    Ngrams,
    Spellings,
)
from tf_smoothclir.lexical.words import NO_WORD
from tf_smoothclir.text.evidence import WORD
from tf_smoothclir.text.tokens import TextEncoder
from tf_smoothclir.text.vocabulary import UNKNOWN_ID


def joined_with_neighbours(words: tf.RaggedTensor, encoder: TextEncoder) -> tf.Tensor:
    """The id of each word and a neighbour written as one, `[words]` int32; `UNKNOWN_ID` or less."""
    # As `joined_words.joined_with_neighbour` does; signs are no neighbours.
    places = tf.where(tf.strings.regex_full_match(words.flat_values, WORD))
    texts, rows = (tf.gather_nd(of, places) for of in (words.flat_values, words.value_rowids()))
    ids = encoder.ids(texts[:-1] + texts[1:])
    ids = tf.where(rows[:-1] == rows[1:], ids, UNKNOWN_ID)
    none = tf.fill([tf.minimum(1, tf.size(texts))], UNKNOWN_ID)
    before, after = tf.concat([none, ids], 0), tf.concat([ids, none], 0)
    joined = tf.where(before > UNKNOWN_ID, before, after)
    return tf.scatter_nd(places, joined, tf.shape(words.flat_values, tf.int64))


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
        length = tf.strings.length(word, "UTF8_CHAR")
        is_cut = (length >= FEWEST_CUT) & (length <= MOST_CUT)
        length = tf.where(is_cut, length, 0)
        ids = self._ids_of_parts(word, length)
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

    def _ids_of_parts(self, word: tf.Tensor, length: tf.Tensor) -> tf.Tensor:
        """The id of each part of a word, `[begin, end]` int32; `NO_WORD` where none may be cut."""
        begins = tf.range(length + 1)[:, tf.newaxis]
        sizes = tf.transpose(begins) - begins
        tried = tf.where((sizes >= SHORTEST_FREQUENT) & (sizes < length))
        sizes = tf.gather_nd(sizes, tried)
        texts = tf.strings.substr(
            tf.fill(tf.shape(sizes), word), tf.cast(tried[:, 0], tf.int32), sizes, "UTF8_CHAR"
        )
        found = self._encoder.ids(texts)
        is_part = (found > UNKNOWN_ID) & ((sizes >= SHORTEST) | (found < self._frequent))
        found = tf.where(is_part, found, NO_WORD)
        return tf.scatter_nd(tried, found, tf.cast([length + 1, length + 1], tf.int64))


class NearestInGraph(tf.Module):
    """Finds the nearest words of a vocabulary, as `Spellings` does."""

    def __init__(self, nearest: Spellings):
        super().__init__(name="nearest_words")
        self._trigrams, self._least = NgramsInGraph(nearest.trigrams), nearest.least
        self._pairs = None
        if nearest.pairs is not None:
            self._pairs = NgramsInGraph(nearest.pairs)
            self._in_latin = tf.Variable(nearest.in_latin, trainable=False)
            self._without_vowels = tf.Variable(nearest.without_vowels, trainable=False)

    def ids(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Which of some words have a nearest one, `[found]` int64, and the ids of these, int32."""
        compared = tf.where(tf.strings.regex_full_match(words, COMPARED))
        words = tf.gather_nd(words, compared)
        # Word by word: a count of trigrams for each word of the vocabulary is large.
        nearest = tf.map_fn(self._id, words, fn_output_signature=tf.int32)
        found = nearest != NO_WORD
        return tf.boolean_mask(compared[:, 0], found), tf.boolean_mask(nearest, found)

    def _id(self, word: tf.Tensor) -> tf.Tensor:
        """The id of the nearest word of one."""
        codes = tf.strings.unicode_decode(word, "UTF-8")
        shares, number = self._trigrams.shares(codes)
        of_pairs = tf.ones_like(shares)
        if self._pairs is not None:
            in_latin = tf.strings.regex_full_match(word, IN_LATIN)
            shares = tf.where(self._in_latin == in_latin, 0.0, shares)
            is_without = tf.strings.regex_full_match(word, WITHOUT_VOWELS) | self._without_vowels
            of_pairs = tf.where(is_without, 1.0, self._pairs.shares(codes)[0])
        is_short, are_long = number < FEWEST_TRIGRAMS, self._trigrams.sizes >= FEWEST_TRIGRAMS
        is_like = shares >= tf.where(is_short, 1.0, self._least)
        is_like &= (of_pairs >= LEAST_OF_PAIRS) & (is_short | are_long)
        totals = tf.where(is_like, shares + of_pairs, 0.0)
        total, best = tf.math.top_k(totals, 1)  # of equal ones the first
        return tf.where(total > 0, best, NO_WORD)[0]


class SwappedInGraph(tf.Module):
    """Finds words with two neighbours swapped, as `nearest_words.swapped` does."""

    def __init__(self, encoder: TextEncoder):
        super().__init__(name="swapped_words")
        self._encoder, self._size = encoder, encoder.size

    def ids(self, words: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """Which of some words have one, `[found]` int64, and the ids of these, int32."""
        is_tried = tf.strings.regex_full_match(words, COMPARED)
        is_tried &= tf.strings.length(words, "UTF8_CHAR") >= FEWEST_TRIGRAMS
        tried = tf.where(is_tried)
        ids = tf.map_fn(self._id, tf.gather_nd(words, tried), fn_output_signature=tf.int32)
        return tf.boolean_mask(tried[:, 0], ids != NO_WORD), tf.boolean_mask(ids, ids != NO_WORD)

    def _id(self, word: tf.Tensor) -> tf.Tensor:
        characters = tf.strings.unicode_split(word, "UTF-8")
        places = tf.range(tf.size(characters))
        firsts = places[:-1, tf.newaxis]  # of the two that are swapped
        moved = tf.cast(places == firsts, tf.int32) - tf.cast(places == firsts + 1, tf.int32)
        swapped = tf.strings.reduce_join(tf.gather(characters, places + moved), axis=1)
        ids = self._encoder.ids(swapped)
        least = tf.reduce_min(tf.where(ids > UNKNOWN_ID, ids, self._size))
        return tf.where(least < self._size, least, NO_WORD)


class NgramsInGraph(tf.Module):
    """The shares of `Ngrams`."""

    def __init__(self, ngrams: Ngrams):
        super().__init__(name="ngrams")
        arrays = ngrams.numbers, ngrams.ends, ngrams.words, ngrams.sizes, ngrams.letters
        self._numbers, self._ends, self._words, self.sizes, self._letters = (
            tf.Variable(array, trainable=False) for array in arrays
        )
        self._length = ngrams.length

    def shares(self, codes: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        """The share of common n-grams, `[vocabulary]` float32, and those of code points."""
        numbers = self._ngrams(codes)
        places = tf.searchsorted(self._numbers, numbers)
        places = tf.minimum(places, tf.size(self._numbers) - 1)
        places = tf.boolean_mask(places, tf.gather(self._numbers, places) == numbers)
        ends = tf.gather(self._ends, places), tf.gather(self._ends, places + 1)
        entries = tf.gather(self._words, tf.ragged.range(*ends).flat_values)
        ones = tf.ones_like(entries, tf.float32)
        common = tf.math.unsorted_segment_sum(ones, entries, tf.size(self.sizes))
        sizes = tf.maximum(self.sizes + tf.size(numbers), 1)
        return 2 * common / tf.cast(sizes, tf.float32), tf.size(numbers)

    def _ngrams(self, codes: tf.Tensor) -> tf.Tensor:
        size = self._letters.shape[0]
        letters = tf.gather(self._letters, tf.minimum(codes, size - 1))
        letters = tf.where(codes < size, letters, tf.cast(codes, tf.int64))
        letters = tf.boolean_mask(letters, (letters < MARKS[0]) | (letters >= MARKS[1]))
        marked = tf.concat([[BEGIN], letters, [END]], axis=0)
        number = tf.maximum(0, tf.size(marked) + 1 - self._length)
        numbers = tf.zeros([number], tf.int64)
        for place in range(self._length):
            numbers = numbers * 2**BITS + marked[place : place + number]
        return numbers
