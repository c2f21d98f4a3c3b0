"""Softmax cross-entropy of a candidate list."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.listwise import ListwiseLoss


@register
class SoftmaxLoss(ListwiseLoss):
    """Softmax cross-entropy of a list, weighted by grade (ListNet, Cao et al. 2007).

        softmax(s, g) = -Σ_i g_i log(exp(s_i) / Σ_j exp(s_j)),  s = r / T

    Cao et al., "Learning to Rank: From Pairwise Approach to Listwise Approach", ICML 2007. Value
    and gradient are 0 for a list without a grade above 0.

        >>> loss = SoftmaxLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # 2 log(1 + exp(2 - 1))
        2.6265

    Args:
        temperature: T > 0 in units of the similarity.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        real_scores = tf.where(y_true >= 0, y_pred, y_pred.dtype.min)
        return -tf.reduce_sum(tf.nn.relu(y_true) * tf.nn.log_softmax(real_scores), axis=1)
