"""K-NRM (Xiong et al., SIGIR 2017) with frozen word vectors, as in Yu and Allan, SIGIR 2020.

    K_k(i) = Σ_j exp(-(S_ij - μ_k)² / (2 σ_k²)),    φ_k = Σ_i log(1 + K_k(i))

The logarithm of 1 + K is that of MatchZoo: an empty kernel adds 0 instead of a large negative
number.
"""

from __future__ import annotations

from typing import NamedTuple

import tensorflow as tf

from tf_smoothclir.interaction.learning import HINGE, LearningSettings
from tf_smoothclir.interaction.networks.base import WordTables
from tf_smoothclir.papers.yu2020.networks.cosines import Cosines, PaperNetwork

_WIDTH, _NARROW_WIDTH = 0.1, 0.001


class Kernel(NamedTuple):
    """A Gaussian kernel."""

    mean: float  # the similarity that it counts, μ
    width: float  # σ


def kernels(number: int) -> tuple[Kernel, ...]:
    """Evenly spaced kernels with σ = 0.1, and one at 1 with σ = 0.001 for the same word."""
    # For 20, means are -18/19, -16/19, ..., 18/19 and 1, as in MatchZoo.
    even = number - 1
    means = ((2 * place + 1) / even - 1 for place in range(even))
    return (*(Kernel(mean, _WIDTH) for mean in means), Kernel(1.0, _NARROW_WIDTH))


def kernel_features(cosines: Cosines, pooled: tuple[Kernel, ...]) -> tf.Tensor:
    """Φ, `[batch, kernels]` float32; missing words add nothing."""
    cells = tf.cast(cosines.cells, tf.float32)
    features = []
    for mean, width in pooled:  # one at a time, so that no array is larger than the similarities
        counted = tf.exp(tf.square(cosines.values - mean) * (-0.5 / width**2)) * cells
        of_words = tf.math.log1p(tf.reduce_sum(counted, axis=2))
        features.append(tf.reduce_sum(of_words, axis=1))
    return tf.stack(features, axis=1)


class Knrm(PaperNetwork):
    """K-NRM, whose features count with `kernels`."""

    features_once = True

    learning = LearningSettings(HINGE, epochs=20, patience=5)

    def __init__(self, tables: WordTables, number: int = 20, **kwargs):
        super().__init__(tables, **kwargs)
        self.kernels = kernels(number)
        self.weight = self._weight("weight", number, 1)
        self.bias = self._bias("bias")

    def features(self, query_ids: tf.Tensor, document_ids: tf.Tensor) -> tuple[tf.Tensor]:
        """φ, `[batch, kernels]` float32."""
        cosines = Cosines.of(self.tables, query_ids, document_ids)
        return (kernel_features(cosines, self.kernels),)

    def score(self, features: tuple[tf.Tensor], training: bool = False) -> tf.Tensor:
        return tf.matmul(features[0], self.weight)[:, 0] + self.bias
