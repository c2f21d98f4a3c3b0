"""The losses, towers, objectives, re-rankers and distributions of the package itself.

Named, not imported: flags and their checks need no TensorFlow. What is said of a class here, such
as `needs_lists`, is what its attribute of this name says.
"""

from __future__ import annotations

from tf_smoothclir.plugins import register

_LISTS = {"needs_lists": True}
_LOSSES = (
    ("sosl", "sosl:SmoothOrdinalSearchLoss", "Smooth Ordinal Search Loss (Liu et al. 2020).", {}),
    ("mse", "mse:SegmentMeanSquaredError", "squared distance to the grade's segment.", {}),
    ("proportional_odds", "proportional_odds:ProportionalOdds", "that of the authors' code.", {}),
    ("three_part_l2", "three_part_l2:ThreePartL2", "3PartL2 (Nigam et al. 2019).", {}),
    ("cumulative_logits", "cumulative_logits:CumulativeLogits", "McCullagh's odds.", {}),
    ("ordinal_softmax", "ordinal_softmax:OrdinalSoftmaxLoss", "lists, by grade.", _LISTS),
    ("softmax", "softmax:SoftmaxLoss", "lists, as one cross entropy.", _LISTS),
    ("approx_ndcg", "approx_ndcg:ApproxNDCGLoss", "lists, by a smooth NDCG.", _LISTS),
    ("pairwise_hinge", "pairwise:PairwiseHingeLoss", "lists, by margins.", _LISTS),
    ("pairwise_logistic", "pairwise:PairwiseLogisticLoss", "lists, by odds.", _LISTS),
    ("list_mle", "list_mle:ListMLELoss", "lists, by the likelihood of their order.", _LISTS),
    ("given", "given:GivenLoss", "", {}),  # an object that Python gave
)
_TOWERS = (
    (
        "average_pooling",
        "average_pooling:AveragePoolingTower",
        "the mean of the word vectors.",
        {
            "accepted_token_weights": ("none", "idf", "learned"),
            "weighs_positions": True,
            "can_be_cut": True,
            "trains_words_alone": True,
        },
    ),
    ("cnn", "cnn:CNNTower", "reads word order, and takes many times as long.", {}),
    ("lstm", "lstm:LSTMTower", "the same.", {"is_recurrent": True}),
    ("given", "given:GivenTower", "", {}),  # Keras layers that Python gave
)

for _name, _path, _help, _facts in _LOSSES:
    register("loss", _name, f"tf_smoothclir.losses.{_path}", help=_help, facts=_facts)
for _name, _path, _help, _facts in _TOWERS:
    register("tower", _name, f"tf_smoothclir.towers.{_path}", help=_help, facts=_facts)
register(
    "objective",
    "ranking",
    "tf_smoothclir.training.tasks:ranking_task",
    help="--loss over judged pairs or candidate lists.",
)
register(
    "distribution",
    "none",
    "tf_smoothclir.training.processes:single_process",
    help="one process, on the whole set.",
)
register("reranker", "none", None, help="the order of the first stage stays.")
register(
    "reranker",
    "late_interaction",
    "tf_smoothclir.interaction.networks.late_interaction:LateInteraction",
    help="each query word looks for its best match in the document, by position and with its"
    " neighbour; fast.",
)
