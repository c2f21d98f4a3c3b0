"""The experiments of Liu et al. 2020, "Cross-Lingual Document Retrieval with Smooth Learning"."""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.experiment import Experiment
from tf_smoothclir.papers.laboratory.systems import System
from tf_smoothclir.settings.presets import PAPER_TOWERS

NEGATIVES = tuple(range(20, 101, 10))  # of Figure 5
EPSILONS = tuple(step / 4 for step in range(9))  # 0 to 2
_SOSL = {"loss": "sosl", "tower": "average_pooling"}


def _loss(name: str, loss: str, tuned: str = "thresholds", **options) -> System:
    changes = {**_SOSL, "loss": loss, **options}
    return System(name, changes, changes, tuned)


def _tower(name: str, tower: str, **changes) -> System:
    return System(name, {**_SOSL, "tower": tower, **changes}, _SOSL)


LOSSES = (
    _loss("SOSL", "sosl"),
    _loss("3PartL2", "three_part_l2", tuned="cut_points"),
    _loss("MSE", "mse"),
    _loss("PO", "proportional_odds"),
    _loss("Cumulative logits", "cumulative_logits", temperature=0.1),
)
TOWERS = (
    _tower("Average pooling", "average_pooling"),
    _tower("DSSM-CNN", "cnn", published_towers=True, **PAPER_TOWERS["cnn"]),
    _tower("DSSM-LSTM", "lstm", published_towers=True, **PAPER_TOWERS["lstm"]),
)
SMOOTHNESS = tuple(
    System(f"{e:g}", {**_SOSL, "epsilon": e}, {**_SOSL, "epsilon": e}) for e in EPSILONS
)
MORE_NEGATIVES = tuple(System(str(n), {**_SOSL, "negatives": n}, _SOSL) for n in NEGATIVES)


LIU_2020 = (
    Experiment(
        "table1",
        "Table 1: statistics of the sets",
        "Queries, partly relevant documents per query (SR/Q) and documents of each language.",
    ),
    Experiment(
        "table2",
        "Table 2: losses",
        "The paper: SOSL is best in all languages by all metrics, according to the text; P_r@5 of"
        " Italian and Swahili says otherwise. Average pooling; thresholds of each loss, and cut"
        " points of 3PartL2, by grid search on validation. PO is that of the authors' code, nearly"
        " a multiple of MSE. Cumulative logits, not in the paper, are McCullagh's proportional odds"
        " with scores divided by 0.1.",
        "loss",
        LOSSES,
    ),
    Experiment(
        "table3",
        "Table 3: towers",
        "The paper: average pooling is best by all metrics in all languages. All towers use SCS and"
        " SOSL with its thresholds of Table 2. As in the paper, CNN and LSTM have learning rate"
        " 0.001, falling by 5% per epoch, and the LSTM has batches of 64 and no more than 15"
        " epochs. CNN and LSTM are those of the authors' code (--published_towers).",
        "tower",
        TOWERS,
    ),
    Experiment(
        "figure1",
        "Figure 1: gradient of SCS",
        "The paper: the gradient of SCS is bounded, more tightly for larger ε; that of the plain"
        " cosine goes to infinity at the origin.",
        needs_set=False,
    ),
    Experiment(
        "figure2",
        "Figure 2: SOSL and MSE",
        "The paper: SOSL is zero inside the right segment; MSE is zero at a single score.",
        needs_set=False,
    ),
    Experiment(
        "figure3",
        "Figure 3: scores by grade",
        "The paper, on training pairs: SOSL separates the three grades well; 3PartL2 mixes NR and"
        " SR; MSE and PO mix SR and MR and place few MR in their segment.",
        "loss",
        LOSSES,
    ),
    Experiment(
        "figure4",
        "Figure 4: smoothness",
        "The paper: any ε from 0.25 to 1.75 is better than the plain cosine (ε = 0), and the choice"
        " matters little. SOSL, thresholds of each ε by grid search on validation.",
        "ε",
        SMOOTHNESS,
    ),
    Experiment(
        "figure5",
        "Figure 5: negatives",
        "The paper: with five times the negatives, NDCG, MRR and MAP fall by about a tenth, P_mr@1"
        " more. Its authors' numbers are in their repository (result/Negative_sample.R), which does"
        " not name the set. SOSL with its thresholds of Table 2; training and evaluation lists have"
        " the same number of negatives.",
        "negatives",
        MORE_NEGATIVES,
    ),
)
