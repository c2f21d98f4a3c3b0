"""Pairwise losses: each document should score above those of lower grades in its list."""

from __future__ import annotations

from tf_smoothclir._compat.lists import pairwise_hinge_losses, pairwise_logistic_losses
from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.listwise import ListwiseLoss


@register
class PairwiseHingeLoss(ListwiseLoss):
    """Hinge loss of the pairs that differ in grade (Joachims 2002).

        hinge(s, g) = mean of max(0, 1 - (s_i - s_j)) over the pairs with g_i > g_j,  s = r / T

    Joachims, "Optimizing Search Engines using Clickthrough Data", KDD 2002. Value and gradient are
    0 for a list of equal grades.

        >>> loss = PairwiseHingeLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # 1 - (1 - 2)
        2.0000

    Args:
        temperature: T > 0 in units of the similarity.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        return pairwise_hinge_losses(y_true, y_pred)


@register
class PairwiseLogisticLoss(ListwiseLoss):
    """Logistic loss of the pairs that differ in grade (RankNet, Burges et al. 2005).

        logistic(s, g) = mean of log(1 + exp(s_j - s_i)) over the pairs with g_i > g_j,  s = r / T

    Burges et al., "Learning to Rank using Gradient Descent", ICML 2005. Value and gradient are 0
    for a list of equal grades.

        >>> loss = PairwiseLogisticLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # log(1 + exp(2 - 1))
        1.3133

    Args:
        temperature: T > 0 in units of the similarity.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        return pairwise_logistic_losses(y_true, y_pred)
