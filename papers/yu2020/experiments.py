"""The experiments of Yu and Allan 2020: Tables 1 to 3 and Figure 1."""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.experiment import Experiment
from tf_smoothclir.papers.yu2020.systems import ETAS, OURS, PAPER, PRESET_SYSTEMS, exact_at

YU_2020 = (
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
        (*PAPER, *OURS, *PRESET_SYSTEMS),
    ),
    Experiment(
        "yu2020_figure1",
        "Figure 1 of Yu and Allan: similarities of words",
        "The paper: MatchPyramid with exact matches is best where a cosine of 0.3 counts as one;"
        " few pairs of words are that similar. Similarities across languages have a small variance,"
        " a negative mean and no visible skew; those within one language a larger variance, a"
        " positive mean and a positive skew.",
        "η",
        tuple(map(exact_at, ETAS)),
    ),
)
