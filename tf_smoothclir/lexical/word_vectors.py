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
    model, seed, vectors = settings.model, settings.training.seed, []
    for role in ROLES:
        words = tokenized_set.vocabulary(role)
        if model.query_embeddings:
            path = getattr(model, f"{role}_embeddings")
            loaded = load_embeddings(path, words, dim=model.dim, seed=0)
            vectors.append(np.where(loaded.in_file[:, None], loaded.matrix, 0))
        else:
            of_role = occurrences(tokenized_set, (role,), size=len(words), dim=_DIM, seed=seed)
            vectors.append(of_role.vectors())
    return WordVectors(*vectors)
