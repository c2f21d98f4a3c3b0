"""The experiments as data: their systems, and what the paper claims.

Those whose names begin with yu2020 are from Yu and Allan 2020, "A Study of Neural Matching Models
for Cross-lingual IR", with li2018 from Li and Cheng 2018, "Learning Neural Representation for CLIR
with Adversarial Framework", all others from Liu et al. 2020, except what goes beyond that paper.
"""

from __future__ import annotations

import dataclasses

from tf_smoothclir.papers.laboratory import systems
from tf_smoothclir.papers.laboratory.systems import System
from tf_smoothclir.papers.li2018.systems import POOLED_SYSTEMS, TABLE_2_SYSTEMS, TABLE_3_SYSTEMS
from tf_smoothclir.papers.liu2020.paper_numbers import FIGURE_5
from tf_smoothclir.papers.yu2020 import systems as yu2020
from tf_smoothclir.papers.yu2020.systems import MatchingSystem
from tf_smoothclir.settings.training import METRICS


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A table or a figure."""

    name: str  # its name on the command line
    title: str  # heading
    claim: str  # what the paper concludes from it, and how ours differs
    first_column: str = ""  # what the systems differ in
    systems: tuple[System, ...] = ()  # what is trained; may be empty
    # whether the first system is a baseline that the others are tested against
    compared: bool = False
    # the columns of its table; "full/MRR@10" is for full retrieval
    metrics: tuple[str, ...] = METRICS
    costs: bool = False  # whether the table also shows time and memory
    # what is ranked with of Yu and Allan 2020, besides `systems`
    matching: tuple[MatchingSystem, ...] = ()
    left_out: tuple[str, ...] = ()  # names of systems that `StudySet.suited` left out


# Re-ranking of the candidate lists, and the whole collection.
_WITH_FULL = ("P_mr@1", "NDCG@5", "MAP", "full/MRR@10")
_ALL = (
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
        systems.LOSSES,
        compared=True,
    ),
    Experiment(
        "table3",
        "Table 3: towers",
        "The paper: average pooling is best by all metrics in all languages. All towers use SCS and"
        " SOSL with its thresholds of Table 2. As in the paper, CNN and LSTM have learning rate"
        " 0.001, falling by 5% per epoch, and the LSTM has batches of 64 and no more than 15"
        " epochs. CNN and LSTM are those of the authors' code (--published_towers).",
        "tower",
        systems.TOWERS,
        compared=True,
    ),
    Experiment(
        "figure1",
        "Figure 1: gradient of SCS",
        "The paper: the gradient of SCS is bounded, more tightly for larger ε; that of the plain"
        " cosine goes to infinity at the origin.",
    ),
    Experiment(
        "figure2",
        "Figure 2: SOSL and MSE",
        "The paper: SOSL is zero inside the right segment; MSE is zero at a single score.",
    ),
    Experiment(
        "figure3",
        "Figure 3: scores by grade",
        "The paper, on training pairs: SOSL separates the three grades well; 3PartL2 mixes NR and"
        " SR; MSE and PO mix SR and MR and place few MR in their segment.",
        "loss",
        systems.LOSSES,
    ),
    Experiment(
        "figure4",
        "Figure 4: smoothness",
        "The paper: any ε from 0.25 to 1.75 is better than the plain cosine (ε = 0), and the choice"
        " matters little. SOSL, thresholds of each ε by grid search on validation.",
        "ε",
        systems.SMOOTHNESS,
        compared=True,
    ),
    Experiment(
        "figure5",
        "Figure 5: negatives",
        "The paper: with five times the negatives, NDCG, MRR and MAP fall by about a tenth, P_mr@1"
        " more. Its authors' numbers are in their repository (result/Negative_sample.R), which does"
        " not name the set. SOSL with its thresholds of Table 2; training and evaluation lists have"
        " the same number of negatives.",
        "negatives",
        systems.MORE_NEGATIVES,
        metrics=tuple(FIGURE_5),
    ),
    Experiment(
        "gradients",
        "Gradients: smoothness and clipping",
        "The paper, section 3.3: clipping gradients alone does not suffice, SCS improves on it. The"
        " authors' code clips the joint norm at 5, which may never be reached; so there is a second"
        " limit among the norms that occur. SOSL, thresholds of each ε as in Figure 4; norms are"
        " those before clipping.",
        "similarity",
        systems.CLIPPING,
        compared=True,
    ),
    Experiment(
        "related",
        "Few and many related documents",
        "The paper's languages have 0.6 to 12.6 documents of grade 1 per query (SR/Q). Here the"
        " judgments of grade 1 of one set are thinned to a mean (--related_per_query), in training"
        " and evaluation; 'all' is the whole set. Thresholds of each loss as in Table 2.",
        "loss, SR/Q",
        systems.FEWER_RELATED,
    ),
    Experiment(
        "queries",
        "Few and many training queries",
        "What towers (--preset=dense), translation table (--preset=lexical) and both together"
        " (--preset=best) learn from 500 to all training queries, drawn at random"
        " (--max_train_queries). Collection, validation and test queries are always whole. Towers"
        " and table are the halves of the hybrid.",
        "retriever, training queries",
        systems.LEARNING_CURVES,
        metrics=_WITH_FULL,
    ),
    Experiment(
        "fast",
        "What departs from the paper for speed",
        "Each default of the flags that differs from --preset=paper, alone: what it costs or"
        " brings, and its time.",
        "setting",
        systems.DEPARTURES,
        compared=True,
        metrics=_WITH_FULL,
        costs=True,
    ),
    Experiment(
        "choices",
        "Shuffling, pre-trained vectors, separate modules",
        "The paper says without figures that shuffled pairs train better, and separate modules of"
        " CNN and LSTM better than one for both languages; it starts from Polyglot's vectors. All"
        " as in --preset=paper. Its authors' batches without shuffling are consecutive pairs of a"
        " file in the order of the queries; here they are whole lists of a few queries, in a new"
        " order each epoch. One module means one vocabulary, one table and one set of layers. The"
        " first two rows start from --query_embeddings and --document_embeddings, all others from"
        " random vectors; without these flags, the third row is left out.",
        "setting",
        systems.CHOICES,
        compared=True,
        metrics=_WITH_FULL,
        costs=True,
    ),
    Experiment(
        "theory",
        "Theory: constants and bound",
        "Proposition 1, Lemma 2 and Theorem 3: each constant, and what a numerical search finds.",
    ),
    Experiment(
        "gap",
        "Theorem 3: the gap of real training",
        "The paper: the loss of new pairs comes closer to that of the training pairs the more of"
        " them there are. Here with fewer queries of one set, beside the bound for SGD with steps"
        " of 0.01/t over as many epochs, δ = 0.05. Training takes larger steps, so the bound need"
        " not hold for it. SOSL with its thresholds of Table 2.",
        "queries",
        systems.FEWER_QUERIES,
    ),
    Experiment(
        "options",
        "Options beyond the paper, one by one",
        "Each option alone, and those of --preset=dense together, compared with the paper's"
        " setting: re-ranking of the candidate lists, and full/MRR@10 over the whole collection."
        " All systems have the thresholds of --thresholds.",
        "setting",
        systems.OPTIONS,
        compared=True,
        metrics=_WITH_FULL,
        costs=True,
    ),
    Experiment(
        "ablation",
        "Ablation: --preset=dense",
        "--preset=dense with 64 dimensions, and that without one thing after the other, beside the"
        " paper's setting, weights of positions in that setting, 512 dimensions with and without"
        " vectors that can be cut, these cut, and the other retrievers (presets have no more epochs"
        " than they name): re-ranking of candidate lists, and full/MRR@10 over the whole"
        " collection. Rows of one training have its time and memory.",
        "setting",
        systems.ABLATION,
        compared=True,
        metrics=_WITH_FULL,
        costs=True,
    ),
    Experiment(
        "yu2020_table1",
        "Table 1 of Yu and Allan: nearest words",
        "The paper: the nearest words of another language have lower cosines, closer together, than"
        " those of the same language, and the nearest one is not always the best translation.",
    ),
    Experiment(
        "yu2020_table2",
        "Table 2 of Yu and Allan: statistics",
        "Queries, documents, relevant documents and listed documents of each query.",
    ),
    Experiment(
        "yu2020_table3",
        "Table 3 of Yu and Allan: matching models",
        "The paper, on 90 to 160 queries with documents that people labeled: all neural models beat"
        " all unsupervised ones; DRMM with cosines is best; translating queries word by word costs"
        " every model. Each query ranks its listed documents. Rows that the paper does not have end"
        " with (ours).",
        "system",
        systems.YU2020_SYSTEMS,
        matching=(*yu2020.PAPER, *yu2020.OURS),
    ),
    Experiment(
        "yu2020_figure1",
        "Figure 1 of Yu and Allan: similarities of words",
        "The paper: MatchPyramid with exact matches is best where a cosine of 0.3 counts as one;"
        " few pairs of words are that similar. Similarities across languages have a small variance,"
        " a negative mean and no visible skew; those within one language a larger variance, a"
        " positive mean and a positive skew.",
        "η",
        matching=tuple(yu2020.exact_at(eta) for eta in yu2020.ETAS),
    ),
)
_LI_2018 = (
    Experiment(
        "li2018_table1",
        "Li and Cheng 2018, Table 1: collections",
        "Documents, distinct words, mean length of a document in words, queries.",
    ),
    Experiment(
        "li2018_table2",
        "Li and Cheng 2018, Table 2: systems",
        "The paper: the adversarial model is best of what learns representations, near machine"
        " translation, at about 90% of queries in the language of the documents: MON > MT > OURS >"
        " XCNN > BAE > S2Net. Here all learn from the same training pairs.",
        "system",
        TABLE_2_SYSTEMS,
    ),
    Experiment(
        "li2018_table3",
        "Li and Cheng 2018, Table 3: without the adversary",
        "The paper: the model is better with its adversary than without (M_adv). The other rows are"
        " not in the paper.",
        "model",
        TABLE_3_SYSTEMS,
    ),
    Experiment(
        "li2018_pooled",
        "Li and Cheng 2018, Table 3 with average pooling",
        "The same rows and more, with average pooling in place of LSTMs, which trains many times as"
        " fast. Not in the paper.",
        "model",
        POOLED_SYSTEMS,
    ),
)
EXPERIMENTS = {experiment.name: experiment for experiment in (*_ALL, *_LI_2018)}
