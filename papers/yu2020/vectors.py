"""The word vectors of an experiment."""

from __future__ import annotations

import numpy as np

from tf_smoothclir.data.bilingual_vectors import occurrences
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.interaction.alignment import aligned, mined_dictionary
from tf_smoothclir.interaction.texts import InteractionTexts
from tf_smoothclir.lexical.word_vectors import WordVectors, given_vectors
from tf_smoothclir.papers.yu2020.options import MAPPED, PAIRS
from tf_smoothclir.settings.run import RunSettings

_DIM = 300  # as in the paper: unrelated words have a cosine of 1 / √300 = 0.06 or so
_LEAST_PAIRS = 2


def word_vectors(
    kind: str, settings: RunSettings, tokenized_set: TokenizedSet, texts: InteractionTexts
) -> WordVectors:
    """The vectors of both vocabularies; zeros for words without one.

    Only training queries and their judgments are used, and texts of documents.
    """
    if kind == PAIRS:
        return WordVectors(*(_of_pairs(settings, tokenized_set, role) for role in ROLES))
    vectors = given_vectors(settings, tokenized_set)
    if kind != MAPPED:
        return vectors
    sizes = len(vectors.queries), len(vectors.documents)
    return aligned(vectors, mined_dictionary(tokenized_set.retrieval_set, texts, sizes))


def _of_pairs(settings: RunSettings, tokenized_set: TokenizedSet, role: str) -> np.ndarray:
    """Random indexing of the training pairs; zeros for words that too few pairs have.

    Two words that stand in one pair alone, and in the same, would be the same word.
    """
    size, seed = len(tokenized_set.vocabulary(role)), settings.training.seed
    found = occurrences(tokenized_set, (role,), size=size, dim=_DIM, seed=seed)
    return np.where(found.counts[:, np.newaxis] >= _LEAST_PAIRS, found.vectors(), 0)
