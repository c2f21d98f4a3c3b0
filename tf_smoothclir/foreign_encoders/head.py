"""A head: what the vectors of a foreign encoder go through before they are compared.

With the mean vector of a role, a matrix W of both roles, and ε = 1 as in the paper,

    v(x) = f / (‖f‖ + ε),  f = (x - mean) W.

Vectors of an encoder have much in common, so their cosines are all near 1; without the means they
are not. Some documents, the hubs, are near to queries of all kinds. So a document loses half of
r(d), its mean score for the 5 of the training queries that are nearest to it: CSLS, of Conneau et
al., "Word Translation Without Parallel Data", ICLR 2018, section 2.3 (they have 10),

    score(q, d) = v(q) · v(d) - r(d) / 2,

which is the inner product of the vectors (v(q), 1) and (v(d), -r(d) / 2) of this head. None of this
needs a judgment. W is 10 I, so that scores reach from one threshold to the others, or is learned.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from tf_smoothclir.foreign_encoders.opening import EncodedSet

EPSILON = 1.0
ARRAYS = ("query", "document", "matrix", "nearest")
FEWEST_QUERIES = 100  # that tell where queries lie, or whether a head is better
NEAREST = 5  # queries of r(d)
_SCALE = 10.0
_MOST_QUERIES = 4096  # that r(d) is chosen from
_TEXTS_AT_ONCE = 4096


@dataclasses.dataclass(frozen=True)
class Head:
    """A head, of float32 arrays."""

    # `matrix`, `[dim, dim]`; `query` and `document`, the means `[dim]`; `nearest`, v(q) of the
    # training queries that r(d) is chosen from, `[queries, dim]`.
    arrays: dict[str, np.ndarray]

    @classmethod
    def of(
        cls, queries: np.ndarray, documents: np.ndarray, seed: int, matrix: np.ndarray | None = None
    ) -> Head:
        """The head of unit vectors, `[texts, dim]` each: of training queries, and all documents."""
        if matrix is None:
            matrix = _SCALE * np.eye(queries.shape[1])
        means = queries.mean(axis=0), documents.mean(axis=0)
        head = cls(dict(zip(ARRAYS, (*means, matrix.astype(np.float32)))))
        number = min(len(queries), _MOST_QUERIES)
        some = np.random.default_rng(seed).choice(len(queries), number, replace=False)
        head.arrays["nearest"] = head._normalised("query", queries[some])
        return head

    def vectors(self, role: str, vectors: np.ndarray) -> np.ndarray:
        """The vectors to rank by, `[texts, dim + 1]`, of unit vectors `[texts, dim]`; float32."""
        parts = np.array_split(vectors, 1 + len(vectors) // _TEXTS_AT_ONCE)
        return np.concatenate([self._widened(role, part) for part in parts])

    def over(self, encoded: EncodedSet) -> EncodedSet:
        """The vectors of a set by this head."""
        return dataclasses.replace(
            encoded,
            queries=self.vectors("query", encoded.queries),
            documents=self.vectors("document", encoded.documents),
        )

    def _widened(self, role: str, vectors: np.ndarray) -> np.ndarray:
        vectors = self._normalised(role, vectors)
        if role == "query":
            last = np.ones(len(vectors), np.float32)
        else:
            scores = vectors @ self.arrays["nearest"].T
            last = np.partition(scores, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1) / -2
        return np.column_stack([vectors, last])

    def _normalised(self, role: str, vectors: np.ndarray) -> np.ndarray:
        """v(x), smooth-normalised."""
        projected = (vectors - self.arrays[role]) @ self.arrays["matrix"]
        return projected / (np.linalg.norm(projected, axis=1, keepdims=True) + EPSILON)
