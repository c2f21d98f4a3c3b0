"""A small world of word vectors."""

import numpy as np
import tensorflow as tf

from tf_smoothclir.interaction.networks.base import WordTables

NO_VECTOR = 5  # a word of either language without a vector
_random = np.random.default_rng(7)
QUERIES = _random.normal(size=(12, 6)).astype(np.float32)
DOCUMENTS = _random.normal(size=(15, 6)).astype(np.float32)
# Some pairs of words are translations, one of them exactly.
DOCUMENTS[2:5] = QUERIES[2:5] + 0.3 * DOCUMENTS[2:5]
DOCUMENTS[6] = 3 * QUERIES[6]
QUERIES[NO_VECTOR] = DOCUMENTS[NO_VECTOR] = 0


def tables():
    return WordTables(QUERIES, DOCUMENTS)


def padded(texts, length=None):
    length = length or max(1, *map(len, texts))
    return tf.constant([[*text, *[0] * (length - len(text))] for text in texts], tf.int32)
