"""What networks read: padded word ids of texts, and word vectors as int8 codes."""

import dataclasses
from collections.abc import Mapping
from typing import Self

import numpy as np

from tf_smoothclir.data.tokenized_set import ROLES, RaggedStore
from tf_smoothclir.interaction.networks.base import unit_rows
from tf_smoothclir.text.vocabulary import PADDING_ID
from tf_smoothclir.utils.ranges import ranges

DIM = 128
_LARGEST = 127


@dataclasses.dataclass(frozen=True)
class InteractionTexts:
    """All texts of a set as ids."""

    queries: np.ndarray  # `[queries, n]` int32; 0 is padding, after the words
    documents: np.ndarray  # `[documents, m]` int32

    def by_length(self, query_rows: np.ndarray, document_rows: np.ndarray) -> np.ndarray:
        """`[pairs]` int, an order in which neighbours are about as long."""
        queries, documents = (
            (ids != PADDING_ID).sum(axis=1)[rows]
            for ids, rows in ((self.queries, query_rows), (self.documents, document_rows))
        )
        return np.lexsort((documents, queries))


def padded(ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Words of texts, one text after the other, as `[texts, longest]` int32; at least a column."""
    rows = np.full((len(lengths), max(1, lengths.max(initial=0))), PADDING_ID, np.int32)
    rows[np.arange(rows.shape[1]) < lengths[:, np.newaxis]] = ids
    return rows


def padded_ids(store: RaggedStore, length: int, kept: np.ndarray | None = None) -> np.ndarray:
    """The first words of texts, `[texts, longest]` int32, where `longest` is 1 to `length`."""
    # Ids that `kept`, `[ids]` bool, has as `False` are left out first; ids from its end on are
    # kept.
    values, lengths = np.asarray(store.values), store.lengths
    if kept is not None:
        chosen = kept[np.minimum(values, len(kept) - 1)] | (values >= len(kept))
        rows = np.repeat(np.arange(len(lengths)), lengths)[chosen]
        values, lengths = values[chosen], np.bincount(rows, minlength=len(lengths))
    first = np.minimum(lengths, length)
    return padded(values[ranges(np.cumsum(lengths) - lengths, first)], first)


@dataclasses.dataclass(frozen=True)
class WordCodes:
    """Directions of word vectors."""

    query: np.ndarray  # `[query words, dim]` int8; zeros for words without a vector
    document: np.ndarray  # `[document words, dim]` int8; the same object for one table of both

    @classmethod
    def of(cls, query: np.ndarray, document: np.ndarray, dim: int = DIM) -> Self:
        """Encodes float32 vectors of one space; longer ones are projected to `dim` numbers."""
        shared = query is document or np.array_equal(query, document)
        tables = [unit_rows(table.astype(np.float32)) for table in (query, document)[shared:]]
        if tables[0].shape[1] > dim:  # the directions in which the vectors of all words differ most
            moments = sum(table.T.astype(np.float64) @ table for table in tables)
            _, axes = np.linalg.eigh(moments)
            axes = axes[:, ::-1][:, :dim].astype(np.float32)
            tables = [unit_rows(table @ axes) for table in tables]
        codes = [_encoded(table) for table in tables]
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
        return {name: getattr(self, name) for name in ROLES[self.shared :]}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Codes from their `arrays`; raises `KeyError` if one is missing."""
        document = arrays["document"]
        return cls(arrays.get("query", document), document)


def _encoded(vectors: np.ndarray) -> np.ndarray:
    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    return np.rint(scaled * _LARGEST).astype(np.int8)
