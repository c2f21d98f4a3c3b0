"""ListMLE: the likelihood of the order by grade."""

from __future__ import annotations

import tensorflow as tf

from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.listwise import ListwiseLoss


@register
class ListMLELoss(ListwiseLoss):
    """Minus the log-likelihood of the list in the order of its grades (Xia et al. 2008).

        ListMLE(s, g) = Σ_i (log Σ_{j from i on} exp(s_j) - s_i),  i, j by falling grade,  s = r / T

    The likelihood is Plackett-Luce's: documents are drawn one after the other, each with odds
    exp(s). Xia et al., "Listwise Approach to Learning to Rank: Theory and Algorithm", ICML 2008.
    Documents of equal grade are drawn in their least likely order, lowest score first. This is
    convex in the scores, and least where equal grades have equal scores.

        >>> loss = ListMLELoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # log(e² + e) - 1 + 0
        1.3133

    Args:
        temperature: T > 0 in units of the similarity.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        grade, other_grade = y_true[:, :, tf.newaxis], y_true[:, tf.newaxis]
        score, other_score = y_pred[:, :, tf.newaxis], y_pred[:, tf.newaxis]
        place = tf.range(tf.shape(y_pred)[1])
        tied = (other_score == score) & (place >= place[:, tf.newaxis])
        # Which documents are left to draw from when it is the turn of each.
        left = (other_grade < grade) | ((other_grade == grade) & ((other_score > score) | tied))
        left &= other_grade >= 0
        odds = tf.reduce_logsumexp(tf.where(left, other_score, y_pred.dtype.min), axis=2)
        return tf.reduce_sum(tf.where(y_true >= 0, odds - y_pred, 0.0), axis=1)
