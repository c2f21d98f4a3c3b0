"""A retrieval set as the rivals read it: every text as words, and the pairs to learn from."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.encoder.tokenizer import tokens_of
from tf_smoothclir.settings.text import TextSettings


@dataclasses.dataclass(frozen=True)
class RivalTexts:
    """A retrieval set as words. All rivals get the same words, cut at the same length as ours."""

    retrieval_set: RetrievalSet  # the set
    queries: list[str]  # query row -> its words, joined by spaces
    documents: list[str]  # document row -> the same
    # `[pairs, 2]` int, query row and document row: the training queries with their documents of
    # the highest grade.
    pairs: np.ndarray

    @classmethod
    def of(cls, retrieval_set: RetrievalSet, settings: TextSettings) -> RivalTexts:
        """Tokenises a set with our tokeniser."""
        source = retrieval_set.source
        chosen = retrieval_set.grades == retrieval_set.num_grades - 1
        chosen &= np.isin(retrieval_set.query_rows, retrieval_set.queries_in("train"))
        return cls(
            retrieval_set,
            _lines((text.text for text in source.queries()), settings.max_query_tokens),
            _lines((text.text for text in source.documents()), settings.max_document_tokens),
            np.stack([retrieval_set.query_rows, retrieval_set.document_rows], axis=1)[chosen],
        )


def _lines(texts: Iterable[str], max_tokens: int) -> list[str]:
    return [" ".join(tokens_of(text)[:max_tokens]) for text in texts]


def numbered(lines: Iterable[str]) -> dict[str, int]:
    """Word -> number, from 0, of all words of some lines."""
    return {
        word: number for number, word in enumerate(sorted({w for x in lines for w in x.split()}))
    }


def counts(lines: Sequence[str], numbers: dict[str, int]) -> sp.csr_array:
    """`[lines, words]` float32, how often each word stands in each line."""
    rows, columns = [], []
    for row, line in enumerate(lines):
        known = [numbers[word] for word in line.split() if word in numbers]
        rows += [row] * len(known)
        columns += known
    ones = np.ones(len(rows), np.float32)
    matrix = sp.csr_array((ones, (rows, columns)), shape=(len(lines), len(numbers)))
    matrix.sum_duplicates()
    return matrix
