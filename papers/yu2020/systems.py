"""The systems of Yu and Allan 2020, "A Study of Neural Matching Models for Cross-lingual IR"."""

from __future__ import annotations

import dataclasses

# What ranks.
RANDOM, LITERAL, MEAN_VECTORS, TRANSLATED, NETWORK = (
    *("random order", "literal", "mean vectors", "translated queries"),
    "network",
)


@dataclasses.dataclass(frozen=True)
class MatchingSystem:
    """A row of Table 3."""

    name: str  # as in the paper; rows that it does not have end with "(ours)"
    kind: str  # what ranks: one of the constants of this module
    model: str = ""  # the ranker or the network; "idf" for mean vectors with weights
    interaction: str = "cosine"  # what the cells of MatchPyramid's map hold
    # whether queries are translated word by word before they meet the network
    translates: bool = False
    eta: float = 0.3  # cosine from which two words count as the same, for MP-Exact and MP-Hybrid

    @property
    def learns(self) -> bool:
        """Whether it is trained."""
        return self.kind == NETWORK and self.model != "sum_of_maxima"

    @property
    def costly(self) -> bool:
        """Whether each step of training reads the texts anew, which costs more than all else."""
        return self.model in ("match_pyramid", "conv_knrm", "late_interaction")


def _network(name: str, model: str, **options) -> MatchingSystem:
    return MatchingSystem(name, NETWORK, model, **options)


_PYRAMIDS = tuple(
    _network(f"MP-{kind.capitalize()}", "match_pyramid", interaction=kind)
    for kind in ("cosine", "gaussian", "exact", "hybrid")
)
PAPER = (
    MatchingSystem("BWE-Agg-Add", MEAN_VECTORS),
    MatchingSystem("BWE-Agg-IDF", MEAN_VECTORS, "idf"),
    MatchingSystem("TbT-QT-BM25", TRANSLATED, "bm25"),
    MatchingSystem("TbT-QT-QL", TRANSLATED, "ql"),
    *_PYRAMIDS,
    _network("MP-TbT-QT", "match_pyramid", translates=True),
    _network("DRMM-Cosine", "drmm"),
    _network("DRMM-TbT-QT", "drmm", translates=True),
    _network("KNRM-Cosine", "knrm"),
    _network("KNRM-TbT-QT", "knrm", translates=True),
)
OURS = (
    MatchingSystem("Random order (ours)", RANDOM),
    MatchingSystem("Literal BM25 (ours)", LITERAL, "bm25"),
    _network("Sum of maxima, untrained (ours)", "sum_of_maxima"),
    _network("Late interaction (ours)", "late_interaction"),
    _network("Conv-KNRM (ours)", "conv_knrm"),
)
# The grid of Figure 1; the paper does not say its own.
ETAS = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.8)


def exact_at(eta: float) -> MatchingSystem:
    """MP-Exact with another η."""
    return _network(f"MP-Exact, η = {eta:g}", "match_pyramid", interaction="exact", eta=eta)
