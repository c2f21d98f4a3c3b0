"""The words of queries and documents as networks that read both read them: padded ids, by row."""

from __future__ import annotations

import dataclasses

import numpy as np

from tf_smoothclir.data.tokenized_set import RaggedStore, TokenizedSet
from tf_smoothclir.text.vocabulary import PADDING_ID


@dataclasses.dataclass(frozen=True)
class InteractionTexts:
    """All texts of a set.

    Attributes:
        queries: `[queries, n]` int32; 0 is padding, which stands after the words.
        documents: `[documents, m]` int32.
    """

    queries: np.ndarray
    documents: np.ndarray

    @classmethod
    def of(
        cls, tokenized_set: TokenizedSet, *, query_length: int, document_length: int
    ) -> InteractionTexts:
        """Reads the texts of a set."""
        return cls(
            padded_ids(tokenized_set.tokens("query"), query_length),
            padded_ids(tokenized_set.tokens("document"), document_length),
        )

    def by_length(self, query_rows: np.ndarray, document_rows: np.ndarray) -> np.ndarray:
        """An order of pairs in which neighbours are about as long.

        Batches of such pairs have little padding, which networks leave out.

        Args:
            query_rows: `[pairs]` int.
            document_rows: `[pairs]` int.

        Returns:
            `[pairs]` int, the places of the pairs.
        """
        queries, documents = (
            (ids != PADDING_ID).sum(axis=1)[rows]
            for ids, rows in ((self.queries, query_rows), (self.documents, document_rows))
        )
        return np.lexsort((documents, queries))


def padded_ids(store: RaggedStore, length: int, kept: np.ndarray | None = None) -> np.ndarray:
    """The first words of texts.

    Args:
        kept: `[ids]` bool; ids that are `False` are left out first, ids from its end on are kept.

    Returns:
        `[texts, longest]` int32, where `longest` is at most `length`, and at least 1.
    """
    values, lengths = np.asarray(store.values), store.lengths
    rows = np.repeat(np.arange(len(lengths)), lengths)
    if kept is not None:
        known = np.minimum(values, len(kept) - 1)
        chosen = kept[known] | (values >= len(kept))
        values, rows = values[chosen], rows[chosen]
        lengths = np.bincount(rows, minlength=len(lengths))
    begins = np.cumsum(lengths) - lengths
    places = np.arange(len(values)) - np.repeat(begins, lengths)
    longest = max(1, min(length, int(lengths.max(initial=0))))
    first = places < longest
    padded = np.full((len(lengths), longest), PADDING_ID, np.int32)
    padded[rows[first], places[first]] = values[first]
    return padded
