"""Foreign encoders: models from elsewhere that turn texts into vectors."""

import abc
import hashlib
import os
from collections.abc import Sequence

import numpy as np

from tf_smoothclir.utils.errors import input_error


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
        self._prefixes = query_prefix, document_prefix
        self.digest = hashlib.sha256("\0".join((*parts, *self._prefixes)).encode()).hexdigest()

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of queries, `[texts, dim]` of real numbers; of any length."""
        return self._encoded([self._prefixes[0] + text for text in texts], "queries")

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of documents, `[texts, dim]`."""
        return self._encoded([self._prefixes[1] + text for text in texts], "documents")

    @abc.abstractmethod
    def _encoded(self, texts: list[str], role: str) -> np.ndarray:
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
