"""The networks of Yu and Allan 2020 over frozen word vectors of two languages in one space.

They read the cosines S_ij of each query word i with each document word j.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from tf_smoothclir.interaction.learning import HINGE, LearningSettings
from tf_smoothclir.interaction.networks.base import WordTables, WordVectorNetwork
from tf_smoothclir.text.vocabulary import PADDING_ID

# What the cells of a map of MatchPyramid hold; two of them are two channels.
INTERACTIONS = {
    "cosine": ("cosine",),
    "gaussian": ("gaussian",),
    "exact": ("exact",),
    "hybrid": ("cosine", "exact"),
}
_ROUNDING = 1e-5  # lifts the cosine of a word with itself, such as 0.9999999, into the last bin
_NOTHING = -1e30  # after the end of a document: the maximum of no cell is 0 after ReLU
_WINDOW = 8  # columns of a map that are pooled first
_PARTS, _HIDDEN = 5, 20  # of MatchPyramid


class Cosines(NamedTuple):
    """Cosine of each query word with each document word."""

    values: tf.Tensor  # `[batch, n, m]` float32 in [-1, 1]; 0 where either word is missing
    queries: tf.Tensor  # `[batch, n]` bool, words with a vector; padding has none
    documents: tf.Tensor  # `[batch, m]` bool, words with a vector

    @property
    def cells(self) -> tf.Tensor:
        """`[batch, n, m]` bool, where both words have a vector."""
        return self.queries[:, :, tf.newaxis] & self.documents[:, tf.newaxis]

    @classmethod
    def of(cls, tables: WordTables, query_ids: tf.Tensor, document_ids: tf.Tensor) -> Cosines:
        """Cosines of the words of `[batch, n]` and `[batch, m]` ids, without columns of padding."""
        query_ids, document_ids = without_padding(query_ids), without_padding(document_ids)
        queries, documents = tables.query_vectors(query_ids), tables.document_vectors(document_ids)
        known = (tf.reduce_any(vectors != 0, axis=-1) for vectors in (queries, documents))
        return cls(tf.matmul(queries, documents, transpose_b=True), *known)


def without_padding(ids: tf.Tensor) -> tf.Tensor:
    """`[batch, longest]`: ids without the columns that are padding in all texts."""
    used = tf.reduce_any(ids != PADDING_ID, axis=0)
    longest = tf.reduce_max(tf.where(used, tf.range(1, tf.size(used) + 1), 0))
    return ids[:, : tf.maximum(longest, 1)]


class PaperNetwork(WordVectorNetwork):
    """Base of the paper's networks."""

    def _weight(self, name: str, *shape: int) -> tf.Variable:
        return self.add_weight(name=name, shape=shape, initializer="glorot_uniform")

    def _bias(self, name: str, size: int = 1) -> tf.Variable:
        return self.add_weight(name=name, shape=(size,), initializer="zeros")


class SumOfMaxima(PaperNetwork):
    """Best cosines, added up."""

    features_once = True

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tf.Tensor:
        """The score itself, `[batch]` float32."""
        cosines = Cosines.of(self.tables, query_ids, document_ids)
        best = tf.reduce_max(tf.where(cosines.cells, cosines.values, -1.0), axis=2)
        counts = cosines.queries & tf.reduce_any(cosines.documents, axis=1, keepdims=True)
        return tf.reduce_sum(tf.where(counts, best, 0.0), axis=1)

    def score(self, features: tf.Tensor, training: bool = False) -> tf.Tensor:
        """`[batch]` float32; a pair without a word with a vector has 0."""
        return features


def kernels(number: int) -> tuple[tuple[float, float], ...]:
    """Mean μ and width σ of kernels: evenly spaced ones, and a narrow one for the same word."""
    # For 20, means are -18/19, -16/19, ..., 18/19 and 1, as in MatchZoo.
    even = number - 1
    means = ((2 * place + 1) / even - 1 for place in range(even))
    return (*((mean, 0.1) for mean in means), (1.0, 0.001))


class Knrm(PaperNetwork):
    """K-NRM (Xiong et al., SIGIR 2017), whose features count with `kernels`.

        K_k(i) = Σ_j exp(-(S_ij - μ_k)² / (2 σ_k²)),    φ_k = Σ_i log(1 + K_k(i))

    The logarithm of 1 + K is that of MatchZoo: an empty kernel adds 0 instead of a large negative
    number.
    """

    features_once = True
    learning = LearningSettings(HINGE, epochs=20, patience=5)

    def __init__(self, tables: WordTables, number: int = 20, **kwargs):
        super().__init__(tables, **kwargs)
        self.kernels = kernels(number)
        self.weight = self._weight("weight", number, 1)
        self.bias = self._bias("bias")

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor]:
        """φ, `[batch, kernels]` float32; missing words add nothing."""
        cosines = Cosines.of(self.tables, query_ids, document_ids)
        known, features = tf.cast(cosines.cells, tf.float32), []
        for mean, width in self.kernels:  # one at a time: no array is larger than the cosines
            counted = tf.exp(tf.square(cosines.values - mean) * (-0.5 / width**2)) * known
            of_words = tf.math.log1p(tf.reduce_sum(counted, axis=2))
            features.append(tf.reduce_sum(of_words, axis=1))
        return (tf.stack(features, axis=1),)

    def score(self, features: tuple[tf.Tensor], training: bool = False) -> tf.Tensor:
        return tf.matmul(features[0], self.weight)[:, 0] + self.bias


def bins_of(values: tf.Tensor, number: int) -> tf.Tensor:
    """The bin of each cosine, int32 in [0, number)."""
    places = tf.floor((values + 1) / 2 * (number - 1) + _ROUNDING)
    return tf.clip_by_value(tf.cast(places, tf.int32), 0, number - 1)


def histograms(cosines: Cosines, number: int) -> tf.Tensor:
    """`[batch, n, number]` float32 counts; missing words are counted nowhere."""
    shape = tf.shape(cosines.values)
    rows = shape[0] * shape[1]
    first = tf.reshape(tf.range(rows) * number, [shape[0], shape[1], 1])
    places = tf.reshape(bins_of(cosines.values, number) + first, [-1])
    ones = tf.reshape(tf.cast(cosines.cells, tf.float32), [-1])
    counts = tf.math.unsorted_segment_sum(ones, places, rows * number)
    return tf.reshape(counts, [shape[0], shape[1], number])


class Drmm(PaperNetwork):
    """DRMM (Guo et al., CIKM 2016) with log-count histograms and the gate by term vectors.

        s(q, d) = Σ_i g_i FFN(log(1 + H_i)),    g = softmax_i(w · e(q_i))

    H_i counts the cosines of query word i with all words of the document in 30 bins. Bin b holds
    the cosines from 2 b / 29 - 1 up to the next; the last one holds 1 alone, the same word.
    """

    features_once = True
    learning = LearningSettings(HINGE, epochs=20, patience=5)

    def __init__(self, tables: WordTables, bins: int = 30, hidden: int = 10, **kwargs):
        super().__init__(tables, **kwargs)
        self._bins = bins
        self.hidden = self._weight("hidden", bins, hidden)
        self.hidden_bias = self._bias("hidden_bias", hidden)
        self.output_weight = self._weight("output_weight", hidden, 1)
        self.output_bias = self._bias("output_bias")
        self.gate = self._weight("gate", tables.dim, 1)

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """The counts of the histograms, `[batch, n, bins]` uint16, and `query_ids`."""
        words = without_padding(query_ids)
        cosines = Cosines.of(self.tables, words, document_ids)
        counts = histograms(cosines, self._bins)
        missing = tf.shape(query_ids)[1] - tf.shape(words)[1]
        counts = tf.pad(counts, [(0, 0), (0, missing), (0, 0)])
        return tf.cast(tf.minimum(counts, 65535.0), tf.uint16), query_ids

    def score(self, features: tuple[tf.Tensor, ...], training: bool = False) -> tf.Tensor:
        counts, query_ids = features
        logs = tf.math.log1p(tf.cast(counts, tf.float32))
        inner = tf.tanh(_times(logs, self.hidden) + self.hidden_bias)
        of_words = (_times(inner, self.output_weight) + self.output_bias)[:, :, 0]
        return tf.reduce_sum(self.gates(query_ids) * of_words, axis=1)

    def gates(self, query_ids: tf.Tensor) -> tf.Tensor:
        """`[batch, n]` float32, what each query word counts: 1 in all; 0 without known words."""
        logits = _times(self.tables.query_vectors(query_ids), self.gate)[:, :, 0]
        known = self.tables.known_queries(query_ids)
        logits = tf.where(known, logits, logits.dtype.min)
        highest = tf.stop_gradient(tf.reduce_max(logits, axis=1, keepdims=True))
        powers = tf.where(known, tf.exp(logits - highest), 0.0)
        return tf.math.divide_no_nan(powers, tf.reduce_sum(powers, axis=1, keepdims=True))


def _times(rows: tf.Tensor, matrix: tf.Tensor) -> tf.Tensor:
    """`[batch, n, out]`: one product of all rows, which is faster than one of each text."""
    shape = tf.shape(rows)
    flat = tf.matmul(tf.reshape(rows, [-1, matrix.shape[0]]), matrix)
    return tf.reshape(flat, [shape[0], shape[1], matrix.shape[1]])


def interaction_map(cosines: Cosines, kind: str, eta: float) -> tf.Tensor:
    """`[batch, n, m]` float32; 0 where a word is missing, like the edge of the map."""
    values = cosines.values
    if kind == "gaussian":
        values = tf.exp(2 * (values - 1))
    elif kind == "exact":
        values = tf.cast(values >= eta, tf.float32)
    return tf.where(cosines.cells, values, 0.0)


def pooled_rows(lengths: tf.Tensor, longest: tf.Tensor, parts: int) -> tf.Tensor:
    """`[batch, parts, longest]` bool: which rows each part of a text has."""
    lengths = lengths[:, tf.newaxis, tf.newaxis]
    part = tf.range(parts)[tf.newaxis, :, tf.newaxis]
    row = tf.range(longest)[tf.newaxis, tf.newaxis]
    begin = part * lengths // parts
    end = -(-(part + 1) * lengths // parts)
    return (row >= begin) & (row < end)


class MatchPyramid(PaperNetwork):
    """MatchPyramid (Pang et al., AAAI 2016) over words of two languages.

    An interaction map of n query words by m document words goes through one convolution of 3 x 3
    cells with 64 kernels and ReLU, dynamic max pooling to 5 x 1 and a hidden layer. Pooling part p
    of 5 has the rows ⌊pn/5⌋ to ⌈(p+1)n/5⌉ - 1, so short queries repeat rows.
    """

    learning = LearningSettings(HINGE, epochs=3, patience=2)

    def __init__(
        self, tables: WordTables, interaction: str = "cosine", eta: float = 0.3, kernels: int = 64
    ):
        super().__init__(tables)
        self._kinds, self._eta = INTERACTIONS[interaction], eta
        self.convolutions = [self._weight(f"{of}_kernels", 3, 3, 1, kernels) for of in self._kinds]
        self.biases = [self._bias(f"{of}_bias", kernels) for of in self._kinds]
        self.hidden = self._weight("hidden", _PARTS * kernels * len(self._kinds), _HIDDEN)
        self.hidden_bias = self._bias("hidden_bias", _HIDDEN)
        self.output_weight = self._weight("output_weight", _HIDDEN, 1)
        self.output_bias = self._bias("output_bias")

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Maps, `[batch, n, m, channels]` float32, and lengths of both texts, `[batch]` int32."""
        query_ids, document_ids = without_padding(query_ids), without_padding(document_ids)
        cosines = Cosines.of(self.tables, query_ids, document_ids)
        maps = [interaction_map(cosines, kind, self._eta) for kind in self._kinds]
        both = query_ids, document_ids
        lengths = (tf.reduce_sum(tf.cast(ids > 0, tf.int32), axis=1) for ids in both)
        return tf.stack(maps, axis=-1), *lengths

    def score(self, features: tuple[tf.Tensor, ...], training: bool = False) -> tf.Tensor:
        maps, query_lengths, document_lengths = features
        columns = -tf.shape(maps)[2] % _WINDOW
        maps = tf.pad(maps, [(0, 0), (0, 0), (0, columns), (0, 0)])
        longest = tf.shape(maps)[1:3]
        after = ~tf.sequence_mask(document_lengths, longest[1])[:, tf.newaxis, :, tf.newaxis]
        after = tf.broadcast_to(tf.cast(after, tf.float32), [*tf.unstack(tf.shape(maps)[:3]), 1])
        rows = pooled_rows(query_lengths, longest[0], _PARTS)[..., tf.newaxis]
        pooled = []
        for channel, (weights, bias) in enumerate(zip(self.convolutions, self.biases)):
            highest = _row_maxima(maps[..., channel : channel + 1], after, weights)
            # Bias and ReLU, which never fall, come after the first maximum: far fewer numbers.
            of_rows = tf.nn.relu(highest + bias)[:, tf.newaxis]
            # After ReLU nothing is below 0, so that 0 for rows of other parts wins no maximum.
            of_parts = tf.reduce_max(tf.where(rows, of_rows, 0.0), axis=2)
            pooled.append(tf.reshape(of_parts, [-1, _PARTS * weights.shape[-1]]))
        inner = tf.nn.relu(tf.matmul(tf.concat(pooled, axis=1), self.hidden) + self.hidden_bias)
        return tf.matmul(inner, self.output_weight)[:, 0] + self.output_bias


def _row_maxima(maps: tf.Tensor, after: tf.Tensor, weights: tf.Tensor) -> tf.Tensor:
    """`[batch, n, kernels]`, the highest answer of each kernel, by row of `[batch, n, m, 1]`."""
    # The answers in all cells are hundreds of megabytes, so that passes over them are what costs. A
    # second channel marks the cells after the document, and its kernel takes them out of the
    # maximum without a pass of its own. Pooling, unlike a maximum, has a gradient without masks of
    # all cells, and a fast one if its window is constant: m is a multiple of `_WINDOW`.
    middle = tf.constant(np.eye(9)[4].reshape(3, 3, 1, 1) * _NOTHING, tf.float32)
    both = tf.concat([weights, tf.broadcast_to(middle, tf.shape(weights))], axis=2)
    answers = tf.nn.conv2d(tf.concat([maps, after], axis=-1), both, 1, "SAME")
    window = [1, _WINDOW]
    return tf.reduce_max(tf.nn.max_pool2d(answers, window, window, "VALID"), axis=2)
