"""Character n-grams of words, hashed into buckets (Bojanowski et al. 2017, fastText)."""

from __future__ import annotations

import tensorflow as tf

MAX_CHARACTERS = 50  # of a word: longer tokens are not words, and every n-gram costs a row
_BYTES = 4 * MAX_CHARACTERS  # always enough for that many characters of UTF-8


def ngrams(
    words: tf.Tensor, buckets: int, shortest: int, longest: int, kind: tf.DType = tf.int32
) -> tf.RaggedTensor:
    """The buckets of the n-grams of "<word>", in core TensorFlow string ops.

    The same graph runs over the words of a retrieval set and inside the exported towers. Characters
    are Unicode characters; "<" and ">" count. N-grams are ordered by length, then from left to
    right. Total: bytes that are not UTF-8 become U+FFFD, and a very long word is cut to its first
    `MAX_CHARACTERS`.

    Args:
        words: `[words]` string.
    """
    characters = tf.strings.unicode_split(tf.strings.substr(words, 0, _BYTES), "UTF-8")
    characters = characters[:, :MAX_CHARACTERS]
    marks = tf.cast(characters.row_lengths() > 0, tf.int64)
    before, after = (
        tf.RaggedTensor.from_row_lengths(
            tf.fill([tf.reduce_sum(marks)], mark), marks, validate=False
        )
        for mark in "<>"
    )
    marked = tf.concat([before, characters, after], axis=1)
    found = tf.strings.ngrams(marked, tuple(range(shortest, longest + 1)), separator="")
    hashed = tf.strings.to_hash_bucket_fast(found.flat_values, buckets)
    return found.with_flat_values(tf.cast(hashed, kind))
