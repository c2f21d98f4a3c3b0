"""The experiments of Yu and Allan 2020, "A Study of Neural Matching Models for Cross-lingual IR".

Their systems, and the figures that the paper prints; its Figure 1 comes without numbers.
"""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.experiment import Experiment, Row
from tf_smoothclir.papers.laboratory.systems import System
from tf_smoothclir.papers.yu2020.options import Matching
from tf_smoothclir.settings.presets import PRESETS


class MatchingSystem(Matching, Row):
    """A row of Table 3."""

    def cells(self, study):
        """One for each seed; none if the costly ones are to be left out."""
        from tf_smoothclir.papers.yu2020.cells import MatchingCell  # needs TensorFlow

        if self.costly and not study.matching.pyramid_epochs:
            return []
        return [MatchingCell(study, study.with_seed(seed), self) for seed in study.seeds]


class _OfPreset(System):
    """What this package trains for retrieval; it has one split, so no rotations."""

    def cells(self, study):
        return [] if study.matching.matching_folds else super().cells(study)


PAPER = (
    MatchingSystem("BWE-Agg-Add", "add"),
    MatchingSystem("BWE-Agg-IDF", "idf"),
    MatchingSystem("TbT-QT-BM25", "bm25", translates=True),
    MatchingSystem("TbT-QT-QL", "ql", translates=True),
    *(
        MatchingSystem(f"MP-{kind.capitalize()}", "match_pyramid", interaction=kind)
        for kind in ("cosine", "gaussian", "exact", "hybrid")
    ),
    MatchingSystem("MP-TbT-QT", "match_pyramid", translates=True),
    MatchingSystem("DRMM-Cosine", "drmm"),
    MatchingSystem("DRMM-TbT-QT", "drmm", translates=True),
    MatchingSystem("KNRM-Cosine", "knrm"),
    MatchingSystem("KNRM-TbT-QT", "knrm", translates=True),
)
OURS = (
    MatchingSystem("Random order (ours)", "random"),
    MatchingSystem("Literal BM25 (ours)", "bm25"),
    MatchingSystem("Sum of maxima, untrained (ours)", "sum_of_maxima"),
    MatchingSystem("Late interaction (ours)", "late_interaction"),
)
_PAPERS_TOWERS = {"loss": "sosl", "tower": "average_pooling"}
PRESET_SYSTEMS = tuple(
    _OfPreset(f"{name}, --preset={preset} (ours)", {**_PAPERS_TOWERS, **PRESETS[preset]})
    for name, preset in (("Two towers", "dense"), ("PSQ", "lexical"))
)
# The grid of Figure 1; the paper does not say its own.
EXACT = tuple(
    MatchingSystem(f"MP-Exact, η = {eta:g}", "match_pyramid", interaction="exact", eta=eta)
    for eta in (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)
)
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
        EXACT,
    ),
)
# Columns and rows of each table of the paper; of the third, MAP.
_LANGUAGES = ("EN→NL", "EN→IT", "EN→FI", "EN→ES")
PAPER_TABLES = {
    "yu2020_table1": (
        ("language", "five words nearest to telephone, with their cosines"),
        ("EN", "phone 0.818, telephones 0.761, Telephone 0.720, landline 0.694, rotary-dial 0.669"),
        (
            "ES",
            "telefónicos 0.535, teléfono 0.522, telefónica 0.522, telefonia 0.520, teléfono 0.520",
        ),
    ),
    "yu2020_table2": (
        ("", *_LANGUAGES),
        ("queries", "160", "160", "90", "160"),
        ("documents", "42,734", "40,320", "16,351", "46,540"),
        ("relevant documents per query", "29.1", "19.5", "10.9", "49.5"),
        ("labeled documents per query", "375.4", "338.3", "282.6", "372.7"),
    ),
    "yu2020_table3": (
        ("system", *_LANGUAGES),
        ("BWE-Agg-Add", "0.237", "0.173", "0.170", "0.297"),
        ("BWE-Agg-IDF", "0.246", "0.178", "0.180", "0.298"),
        ("TbT-QT-BM25", "0.240", "0.231", "0.122", "0.341"),
        ("TbT-QT-QL", "0.297", "0.268", "0.126", "0.387"),
        ("MP-Cosine", "0.348", "0.331", "0.254", "0.423"),
        ("MP-Gaussian", "0.322", "0.319", "0.203", "0.405"),
        ("MP-Exact", "0.327", "0.295", "0.202", "0.415"),
        ("MP-Hybrid", "0.343", "0.326", "0.243", "0.427"),
        ("MP-TbT-QT", "0.327", "0.300", "0.195", "0.409"),
        ("DRMM-Cosine", "0.374", "0.352", "0.304", "0.462"),
        ("DRMM-TbT-QT", "0.345", "0.324", "0.193", "0.450"),
        ("KNRM-Cosine", "0.368", "0.313", "0.286", "0.423"),
        ("KNRM-TbT-QT", "0.329", "0.288", "0.200", "0.405"),
    ),
}
