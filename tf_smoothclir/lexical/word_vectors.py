"""Vectors of the words of both languages in one space, for translation by the nearest word."""

from typing import NamedTuple

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.data.word_places import occurrences
from tf_smoothclir.settings.run import RunSettings
from tf_smoothclir.text.embeddings import load_embeddings

_DIM = 300  # of vectors made from training pairs: unrelated words have a cosine of 1 / √dim or so


class WordVectors(NamedTuple):
    """Vectors of words of two languages in one space."""

    queries: np.ndarray  # `[query vocabulary, dim]`; zeros for words without a vector
    documents: np.ndarray  # `[document vocabulary, dim]`, the same


def given_vectors(settings: RunSettings, tokenized_set: TokenizedSet) -> WordVectors:
    """The vectors of the files that the settings name, or else of the training pairs."""
    if settings.model.query_embeddings:
        return WordVectors(*(_of_file(settings, tokenized_set, role) for role in ROLES))
    return WordVectors(*(_of_pairs(settings, tokenized_set, role) for role in ROLES))


def _of_file(settings: RunSettings, tokenized_set: TokenizedSet, role: str) -> np.ndarray:
    path = getattr(settings.model, f"{role}_embeddings")
    loaded = load_embeddings(path, tokenized_set.vocabulary(role), dim=settings.model.dim, seed=0)
    return np.where(loaded.in_file[:, None], loaded.matrix, 0)


def _of_pairs(settings: RunSettings, tokenized_set: TokenizedSet, role: str) -> np.ndarray:
    size = len(tokenized_set.vocabulary(role))
    seed = settings.training.seed
    return occurrences(tokenized_set, (role,), size=size, dim=_DIM, seed=seed).vectors()
