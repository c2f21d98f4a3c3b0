"""MatchPyramid (Pang et al., AAAI 2016) over words of two languages (Yu and Allan, SIGIR 2020).

An interaction map of n query words by m document words goes through one convolution of 3 x 3 cells
with 64 kernels and ReLU, dynamic max pooling to 5 x 1 and a hidden layer. Pooling part p of 5 has
the rows ⌊pn/5⌋ to ⌈(p+1)n/5⌉ - 1, so short queries repeat rows.
"""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from tf_smoothclir.interaction.learning import HINGE, LearningSettings
from tf_smoothclir.interaction.networks.base import WordTables
from tf_smoothclir.papers.yu2020.networks.cosines import Cosines, PaperNetwork, without_padding

# What the cells of a map hold; two of them are two channels.
INTERACTIONS = {
    "cosine": ("cosine",),
    "gaussian": ("gaussian",),
    "exact": ("exact",),
    "hybrid": ("cosine", "exact"),
}

_NOTHING = -1e30  # after the end of a document: the maximum of no cell is 0 after ReLU
_WINDOW = 8  # columns of a map that are pooled first


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
    """MatchPyramid."""

    learning = LearningSettings(HINGE, epochs=3, patience=2)

    def __init__(
        self,
        tables: WordTables,
        interaction: str = "cosine",
        eta: float = 0.3,
        *,
        kernels: int = 64,
        parts: int = 5,
        hidden: int = 20,
        **kwargs,
    ):
        super().__init__(tables, **kwargs)
        self._kinds, self._eta, self._parts = INTERACTIONS[interaction], eta, parts
        size = parts * kernels * len(self._kinds)
        self.convolutions = [
            self._weight(f"{kind}_kernels", 3, 3, 1, kernels) for kind in self._kinds
        ]
        self.biases = [self._bias(f"{k}_bias", kernels) for k in self._kinds]
        self.hidden = self._weight("hidden", size, hidden)
        self.hidden_bias = self._bias("hidden_bias", hidden)
        self.output_weight = self._weight("output_weight", hidden, 1)
        self.output_bias = self._bias("output_bias")

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor, ...]:
        """Maps, `[batch, n, m, channels]` float32, and lengths of both texts, `[batch]` int32."""
        query_ids, document_ids = without_padding(query_ids), without_padding(document_ids)
        cosines = Cosines.of(self.tables, query_ids, document_ids)
        maps = [interaction_map(cosines, kind, self._eta) for kind in self._kinds]
        return tf.stack(maps, axis=-1), _lengths(query_ids), _lengths(document_ids)

    def score(self, features: tuple[tf.Tensor, ...], training: bool = False) -> tf.Tensor:
        maps, query_lengths, document_lengths = features
        columns = -tf.shape(maps)[2] % _WINDOW
        maps = tf.pad(maps, [(0, 0), (0, 0), (0, columns), (0, 0)])
        longest = tf.shape(maps)[1:3]
        after = ~tf.sequence_mask(document_lengths, longest[1])[:, tf.newaxis, :, tf.newaxis]
        after = tf.broadcast_to(tf.cast(after, tf.float32), [*tf.unstack(tf.shape(maps)[:3]), 1])
        rows = pooled_rows(query_lengths, longest[0], self._parts)[..., tf.newaxis]
        pooled = []
        for channel, (weights, bias) in enumerate(zip(self.convolutions, self.biases)):
            highest = _row_maxima(maps[..., channel : channel + 1], after, weights)
            # Bias and ReLU, which never fall, come after the first maximum: far fewer numbers.
            of_rows = tf.nn.relu(highest + bias)[:, tf.newaxis]
            # After ReLU nothing is below 0, so that 0 for rows of other parts wins no maximum.
            of_parts = tf.reduce_max(tf.where(rows, of_rows, 0.0), axis=2)
            pooled.append(tf.reshape(of_parts, [-1, self._parts * weights.shape[-1]]))
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


def _lengths(ids: tf.Tensor) -> tf.Tensor:
    """`[batch]` int32, the words of each text."""
    return tf.reduce_sum(tf.cast(ids > 0, tf.int32), axis=1)
