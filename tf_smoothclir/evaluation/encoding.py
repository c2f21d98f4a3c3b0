"""Encoding every query and document of a set once, before anything is ranked."""

from __future__ import annotations

import dataclasses

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.hashing import hash_ids
from tf_smoothclir.data.pipeline import token_batches
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.two_tower.model import TwoTower

_TEXTS_PER_BATCH = 1024


@dataclasses.dataclass(frozen=True)
class EncodedSet:
    """A set as vectors.

    Attributes:
        queries: `[queries, dim]` float32, smooth-normalised.
        documents: `[documents, dim]` float32, smooth-normalised.
        tie_order: `[documents]` int64, the rank of each document in the order of the hashes of
            their ids: among equal scores the smaller one comes first.
    """

    queries: np.ndarray
    documents: np.ndarray
    tie_order: np.ndarray


class Encoder:
    """Encodes a tokenized set again and again, such as after each epoch."""

    def __init__(self, model: TwoTower, tokenized_set: TokenizedSet):
        """Encodes the texts of `tokenized_set` with the current weights of `model`."""
        hashes = hash_ids(tokenized_set.retrieval_set.document_ids)
        self._tie_order = np.argsort(np.argsort(hashes, kind="stable"), kind="stable")
        self._batches = {
            role: token_batches(tokenized_set, role, _TEXTS_PER_BATCH) for role in ROLES
        }
        self._vectors = {
            role: tf.function(
                lambda tokens, role=role: model.vectors(role, tokens),
                autograph=False,
                input_signature=[batches.element_spec],
            )
            for role, batches in self._batches.items()
        }

    def __call__(self) -> EncodedSet:
        """Returns all vectors."""
        return EncodedSet(self._encode("query"), self._encode("document"), self._tie_order)

    def _encode(self, role: str) -> np.ndarray:
        vectors = self._vectors[role]
        return np.concatenate([vectors(tokens).numpy() for tokens in self._batches[role]])
