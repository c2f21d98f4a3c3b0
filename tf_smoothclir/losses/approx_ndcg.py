"""ApproxNDCG, a smooth NDCG, as a loss."""

from __future__ import annotations

from tf_smoothclir._compat.lists import approx_ndcg_losses
from tf_smoothclir.losses.base import register
from tf_smoothclir.losses.listwise import ListwiseLoss


@register
class ApproxNDCGLoss(ListwiseLoss):
    """Minus NDCG with smooth ranks (Qin et al. 2010).

        ApproxNDCG(s, g) = -Σ_i (2^{g_i} - 1) / log2(1 + rank_i) / ideal
        rank_i = 1/2 + Σ_j σ(s_j - s_i) over all j, i itself included,  s = r / T

    where "ideal" is the same sum for the best order and its true ranks. Qin, Liu and Li, "A General
    Approximation Framework for Direct Optimization of Information Retrieval Measures", Information
    Retrieval 13. Value and gradient are 0 for a list without a grade above 0.

        >>> loss = ApproxNDCGLoss(temperature=0.1)
        >>> value = loss([[0, 2, -1]], [[0.2, 0.1, 0.9]])  # s = 2, 1; the third is padding
        >>> print(f"{value:.4f}")  # -1 / log2(2 + σ(2 - 1))
        -0.6899

    Args:
        temperature: T > 0 in units of the similarity.
        **kwargs: `reduction` and `name` of `RankingLoss`.
    """

    def call(self, y_true, y_pred):
        return approx_ndcg_losses(y_true, y_pred)
