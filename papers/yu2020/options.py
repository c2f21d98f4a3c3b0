"""What ranks in the experiments of Yu and Allan 2020, and what they can be told by flags."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.settings.base import Settings, setting

# Values of --word_vectors.
PAIRS, GIVEN, MAPPED = "pairs", "given", "mapped"
WORD_VECTORS = {
    PAIRS: "made of the training pairs of the highest grade by random indexing, 300 numbers",
    GIVEN: "of --query_embeddings and --document_embeddings, which share a space",
    MAPPED: "of --query_embeddings and --document_embeddings, each of its own language, mapped by"
    " Procrustes with a dictionary mined from the training pairs of the highest grade",
}
# Words of a text that networks read (paper: 500 of a document), and epochs without a better one
# after which their training ends.
QUERY_WORDS, DOCUMENT_WORDS, PATIENCE = 20, 500, 5
# Words that more than this share of the texts have are left out; no stop list is needed.
MOST_COMMON = {"query": 0.08, "document": 0.15}
_COSTLY = ("match_pyramid", "late_interaction")


@dataclasses.dataclass(frozen=True)
class Matching:
    """What ranks in a row of Table 3."""

    name: str  # as in the paper; rows that it does not have end with "(ours)"
    # "bm25", "ql", a network, or mean vectors: "add", or "idf" with weights; "random" for chance
    model: str
    # whether queries are translated word by word before they meet the ranker or the network
    translates: bool = False
    interaction: str = "cosine"  # what the cells of MatchPyramid's map hold
    eta: float = 0.3  # cosine from which two words count as the same, for MP-Exact and MP-Hybrid

    @property
    def costly(self) -> bool:
        """Whether each step of training reads the texts again, which costs more than all else."""
        return self.model in _COSTLY

    @property
    def learns(self) -> bool:
        """Whether it is trained."""
        return self.costly or self.model in ("drmm", "knrm")


@dataclasses.dataclass(frozen=True)
class MatchingOptions(Settings):
    """How the systems are trained and measured."""

    word_vectors: str = setting(
        PAIRS,
        "Word vectors of the experiments of yu2020. "
        + ". ".join(f"{name}: {WORD_VECTORS[name]}" for name in sorted(WORD_VECTORS))
        + ".",
        choices=WORD_VECTORS,
    )
    matching_folds: int = setting(
        0,
        "Experiments of yu2020: folds of a rotating cross-validation, where each query is a test"
        " query once (paper: 5); this takes as many times as long. 0: the splits of the set.",
        minimum=0,
    )
    matching_epochs: int = setting(
        50, "At most so many epochs of DRMM and K-NRM (paper: 50).", minimum=0
    )
    pyramid_epochs: int = setting(
        5,
        "At most so many epochs of MatchPyramid and late interaction. 0 leaves their rows out.",
        minimum=0,
    )
    pyramid_query_words: int = setting(
        QUERY_WORDS,
        "Words of a query that these two read: their time grows with them.",
        minimum=0,
    )
    pyramid_document_words: int = setting(DOCUMENT_WORDS, "The same of documents.", minimum=0)
