"""The systems of Yu and Allan 2020, "A Study of Neural Matching Models for Cross-lingual IR"."""

from __future__ import annotations

from tf_smoothclir.papers.laboratory.experiment import Row
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
ETAS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)


def exact_at(eta: float) -> MatchingSystem:
    """MP-Exact with another η."""
    name = f"MP-Exact, η = {eta:g}"
    return MatchingSystem(name, "match_pyramid", interaction="exact", eta=eta)
