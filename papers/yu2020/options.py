"""What the experiments of Yu and Allan 2020 can be told by flags."""

from __future__ import annotations

import dataclasses

from tf_smoothclir.papers.yu2020.systems import MatchingSystem

# Values of --word_vectors.
PAIRS, GIVEN, MAPPED, TOWERS = "pairs", "given", "mapped", "towers"
WORD_VECTORS = {
    PAIRS: "made of the training pairs of the highest grade by random indexing, 300 numbers",
    GIVEN: "of --query_embeddings and --document_embeddings, which share a space",
    MAPPED: "of --query_embeddings and --document_embeddings, each of its own language, mapped by"
    " Procrustes with a dictionary mined from the training pairs of the highest grade",
    TOWERS: "the word tables of two towers, trained on the same training queries",
}
# Words that more than this share of the texts have are left out; no stop list is needed.
MOST_COMMON = {"query": 0.08, "document": 0.15}


@dataclasses.dataclass(frozen=True)
class MatchingOptions:
    """How the systems are trained and measured."""

    word_vectors: str = PAIRS  # name of one of `WORD_VECTORS`
    folds: int = 0  # folds of a rotating cross-validation; 0 keeps the splits of the set
    epochs: int = 50  # at most (paper: 50)
    patience: int = 5  # epochs without a better one after which training ends; 0 never
    query_words: int = 20  # words of a query that networks read
    document_words: int = 500  # words of a document (paper: 500)
    # `epochs` of MatchPyramid, Conv-KNRM and late interaction; 0 leaves them out
    pyramid_epochs: int = 5
    pyramid_query_words: int = 20  # `query_words` of these
    pyramid_document_words: int = 500  # `document_words` of these

    def that_matter_to(self, system: MatchingSystem) -> MatchingOptions:
        """The options that have an effect on a system, and defaults for the rest."""
        if not system.learns:
            return MatchingOptions(self.word_vectors, self.folds)
        unused = ("epochs", "query_words", "document_words")
        if not system.costly:
            unused = tuple(f"pyramid_{name}" for name in unused)
        return dataclasses.replace(self, **{name: getattr(_DEFAULTS, name) for name in unused})


_DEFAULTS = MatchingOptions()
