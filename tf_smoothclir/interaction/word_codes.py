"""Word vectors as int8 codes: 128 bytes a word, and what every re-ranker scores with.

Documents are lists of word ids, so the vectors of their words are stored once, here. Networks learn
and score with the decoded vectors, so training, evaluation, search and exported models agree.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import numpy as np

from tf_smoothclir.interaction.networks.base import unit_rows

DIM = 128
_LARGEST = 127
_NAMES = ("query", "document")


@dataclasses.dataclass(frozen=True)
class WordCodes:
    """Directions of word vectors.

    Attributes:
        query: `[query words, dim]` int8; zeros for words without a vector.
        document: `[document words, dim]` int8; the same object if both languages share a table.
    """

    query: np.ndarray
    document: np.ndarray

    @classmethod
    def of(cls, query: np.ndarray, document: np.ndarray, dim: int = DIM) -> WordCodes:
        """Encodes vectors; longer ones are projected to `dim` numbers.

        Args:
            query: `[query words, ...]` float32, in the space of `document`.
            document: `[document words, ...]` float32.
        """
        shared = query is document or np.array_equal(query, document)
        tables = [unit_rows(one.astype(np.float32)) for one in (query, document)[shared:]]
        if tables[0].shape[1] > dim:
            axes = _axes(tables, dim)
            tables = [unit_rows(one @ axes) for one in tables]
        codes = [_encoded(one) for one in tables]
        return cls(codes[0], codes[-1])

    @property
    def shared(self) -> bool:
        """Whether both languages have one table."""
        return self.query is self.document

    def vectors(self) -> tuple[np.ndarray, np.ndarray]:
        """`[words, dim]` float32 of both languages, of length 1 or 0."""
        query = unit_rows(self.query.astype(np.float32))
        return query, query if self.shared else unit_rows(self.document.astype(np.float32))

    def arrays(self) -> dict[str, np.ndarray]:
        """Name -> array, for `of_arrays`; a shared table once."""
        return {name: getattr(self, name) for name in (_NAMES[1:] if self.shared else _NAMES)}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> WordCodes:
        """Codes from their `arrays`; raises `KeyError` if one is missing."""
        document = arrays["document"]
        return cls(arrays.get("query", document), document)


def _axes(tables: list[np.ndarray], dim: int) -> np.ndarray:
    """The `[..., dim]` directions in which the vectors of all words differ most."""
    moments = sum(table.T.astype(np.float64) @ table for table in tables)
    _, axes = np.linalg.eigh(moments)
    return axes[:, ::-1][:, :dim].astype(np.float32)


def _encoded(vectors: np.ndarray) -> np.ndarray:
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    return np.rint(scaled * _LARGEST).astype(np.int8)
