"""Foreign encoders: models from elsewhere that turn texts into vectors."""

import abc
import hashlib
import os
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES
from tf_smoothclir.utils.errors import input_error

PLURALS = {"query": "queries", "document": "documents"}


class ForeignEncoder(abc.ABC):
    """Base of encoders that read queries and documents alike, but for what is put before them.

    Attributes:
        name: To show people, such as "intfloat/multilingual-e5-small".
        digest: A hex digest that is another one whenever the vectors may be others. Vectors are
            kept under it.
        may_change: Whether others may have the same digest, as functions of the same name have.
    """

    may_change = False

    def __init__(self, name: str, *parts: str, query_prefix: str = "", document_prefix: str = ""):
        """Names an encoder.

        Args:
            parts: What else its vectors depend on.
            query_prefix: Put before each query, such as "query: " for e5.
            document_prefix: Put before each document, such as "passage: " for e5.
        """
        self.name = name
        prefixes = query_prefix, document_prefix
        self._prefixes = dict(zip(ROLES, prefixes))
        self.digest = hashlib.sha256("\0".join((*parts, *prefixes)).encode()).hexdigest()

    def encode(self, role: str, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of queries or documents, `[texts, dim]` of any real numbers."""
        return self._encoded(role, [self._prefixes[role] + text for text in texts])

    @abc.abstractmethod
    def _encoded(self, role: str, texts: list[str]) -> np.ndarray:
        """Vectors of texts with their prefixes, `[texts, dim]`."""


def unit_vectors(vectors: np.ndarray, where: str | os.PathLike = "encoder") -> np.ndarray:
    """Scales vectors, `[texts, dim]`, to length 1, so that inner products are cosines."""
    with np.errstate(over="ignore", invalid="ignore"):
        vectors = np.asarray(vectors, np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all():
        reason = f"{np.count_nonzero(~np.isfinite(lengths))} of {len(vectors)} vectors hold NaN,"
        raise input_error(where, f"{reason} infinity, or numbers too large", "Check what made them")
    return vectors / np.where(lengths > 0, lengths, 1)
