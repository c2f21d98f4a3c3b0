"""Foreign encoders: models from elsewhere that turn texts into vectors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np


class ForeignEncoder(Protocol):
    """What a multilingual encoder of any origin must offer to rank, to be measured, or to teach.

    Attributes:
        name: To show people, such as "intfloat/multilingual-e5-small".
        digest: A hex digest that is another one whenever the vectors may be others. Vectors are
            kept under it.
    """

    name: str
    digest: str

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of queries, `[texts, dim]` of real numbers; of any length."""

    def encode_documents(self, texts: Sequence[str]) -> np.ndarray:
        """Returns the vectors of documents, `[texts, dim]`."""


def unit_vectors(vectors: np.ndarray) -> np.ndarray:
    """Scales vectors, `[texts, dim]`, to length 1, so that inner products are cosines."""
    vectors = np.asarray(vectors, np.float32)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)
