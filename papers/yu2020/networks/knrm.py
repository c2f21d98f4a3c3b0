"""K-NRM (Xiong et al., SIGIR 2017) with frozen word vectors, as in Yu and Allan, SIGIR 2020.

    s(q, d) = w · φ(q, d) + b

With frozen vectors φ has nothing to learn, so this is a linear ranker of 20 features.
"""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.interaction.learning import HINGE, LearningSettings
from tf_smoothclir.interaction.networks.base import WordTables
from tf_smoothclir.papers.yu2020.networks.cosines import Cosines, PaperNetwork
from tf_smoothclir.papers.yu2020.networks.kernels import kernel_features, kernels


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
