"""A small world of word vectors, and every network over it."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.interaction.networks.word_tables import WordTables
from tf_smoothclir.papers.yu2020.networks.conv_knrm import ConvKnrm
from tf_smoothclir.papers.yu2020.networks.drmm import Drmm
from tf_smoothclir.papers.yu2020.networks.knrm import Knrm
from tf_smoothclir.papers.yu2020.networks.match_pyramid import MatchPyramid

NO_VECTOR = 5  # a word of either language without a vector
_random = np.random.default_rng(7)
QUERIES = _random.normal(size=(12, 6)).astype(np.float32)
DOCUMENTS = _random.normal(size=(15, 6)).astype(np.float32)
# Some pairs of words are translations, one of them exactly.
DOCUMENTS[2:5] = QUERIES[2:5] + 0.3 * DOCUMENTS[2:5]
DOCUMENTS[6] = 3 * QUERIES[6]
QUERIES[NO_VECTOR] = DOCUMENTS[NO_VECTOR] = 0

NETWORKS = {
    "knrm": Knrm,
    "drmm": Drmm,
    "conv_knrm": lambda tables: ConvKnrm(tables, filters=8),
    **{
        f"match_pyramid-{kind}": lambda tables, kind=kind: MatchPyramid(tables, kind, kernels=4)
        for kind in ("cosine", "gaussian", "exact", "hybrid")
    },
}
UNORDERED = ("knrm", "drmm")  # word order says nothing to them


def tables():
    return WordTables(QUERIES, DOCUMENTS)


def build(name, seed=3):
    """A network with random weights, biases too."""
    tf.keras.utils.set_random_seed(seed)
    network = NETWORKS[name](tables())
    random = np.random.default_rng(seed)
    for weight in network.trainable_weights:
        weight.assign(random.normal(scale=0.4, size=tuple(weight.shape)).astype(np.float32))
    return network


def padded(texts, length=None):
    length = length or max(1, *map(len, texts))
    return tf.constant([[*text, *[0] * (length - len(text))] for text in texts], tf.int32)


def scores(network, queries, documents, query_length=None, document_length=None):
    ids = padded(queries, query_length), padded(documents, document_length)
    return network(ids).numpy()
