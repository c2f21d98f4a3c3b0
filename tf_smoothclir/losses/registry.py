"""The losses by the names that `--loss` has for them."""

from __future__ import annotations

from tf_smoothclir.losses.approx_ndcg import ApproxNDCGLoss
from tf_smoothclir.losses.base import RankingLoss
from tf_smoothclir.losses.cumulative_logits import CumulativeLogits
from tf_smoothclir.losses.learned_thresholds import LearnedThresholdsLoss
from tf_smoothclir.losses.list_mle import ListMLELoss
from tf_smoothclir.losses.mse import SegmentMeanSquaredError
from tf_smoothclir.losses.ordinal_softmax import OrdinalSoftmaxLoss
from tf_smoothclir.losses.pairwise import PairwiseHingeLoss, PairwiseLogisticLoss
from tf_smoothclir.losses.proportional_odds import ProportionalOdds
from tf_smoothclir.losses.softmax import SoftmaxLoss
from tf_smoothclir.losses.sosl import SmoothOrdinalSearchLoss
from tf_smoothclir.losses.three_part_l2 import ThreePartL2

LOSSES: dict[str, type[RankingLoss]] = {
    "sosl": SmoothOrdinalSearchLoss,
    "mse": SegmentMeanSquaredError,
    "proportional_odds": ProportionalOdds,
    "cumulative_logits": CumulativeLogits,
    "three_part_l2": ThreePartL2,
    "ordinal_softmax": OrdinalSoftmaxLoss,
    "softmax": SoftmaxLoss,
    "approx_ndcg": ApproxNDCGLoss,
    "pairwise_hinge": PairwiseHingeLoss,
    "pairwise_logistic": PairwiseLogisticLoss,
    "list_mle": ListMLELoss,
}

# The losses that can train their thresholds, in the class that does.
LEARNED_THRESHOLDS: dict[str, type[RankingLoss]] = {"sosl": LearnedThresholdsLoss}
