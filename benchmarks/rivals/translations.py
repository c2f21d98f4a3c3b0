"""Translations for the rivals that need some: IBM Model 1 of this package, all positions alike.

fast-psq publishes tables that GIZA++ and others made of millions of sentence pairs; here it gets
one that was learned from the same pairs as everything else.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import scipy.sparse as sp

from benchmarks.rivals.texts import RivalTexts, counts, numbered
from tf_smoothclir.lexical.ibm_model_1 import Alignments, pruned
from tf_smoothclir.lexical.sparse_tables import rows_of_1
from tf_smoothclir.utils.errors import input_error


@dataclasses.dataclass(frozen=True)
class Translations:
    """Which query word stands for which document word."""

    query_words: list[str]  # in the order of the columns of `table`
    document_words: list[str]  # in the order of its rows
    table: sp.csr_array  # `[document words, query words]` float32, T(w | t)
    frequencies: np.ndarray  # `[document words]` float32, how often each stands in training pairs

    @classmethod
    def learn(cls, texts: RivalTexts) -> Translations:
        """Learns the table from the training pairs."""
        if not len(texts.pairs):
            raise input_error(
                texts.retrieval_set.source.name,
                "no training query has a document of the highest grade",
                "Judge some, or move queries to the train split",
            )
        queries = [texts.queries[row] for row in texts.pairs[:, 0]]
        documents = [texts.documents[row] for row in texts.pairs[:, 1]]
        query_numbers, document_numbers = numbered(queries), numbered(documents)
        found = counts(documents, document_numbers)
        lengths = np.maximum(np.asarray(found.sum(axis=1)).ravel(), 1)
        shares = sp.csr_array(sp.diags_array((1 / lengths).astype(np.float32)) @ found)
        alignments = Alignments.of(counts(queries, query_numbers), shares)
        (table,) = alignments.learn_counts(np.ones((len(queries), 1)))
        return cls(
            list(query_numbers),
            list(document_numbers),
            pruned(rows_of_1(table)),
            np.asarray(found.sum(axis=0)).ravel(),
        )

    def of_document_words(self) -> dict[str, dict[str, float]]:
        """Document word -> query word -> T(w | t)."""
        return _nested(self.table, self.document_words, self.query_words)

    @functools.cached_property
    def of_query_words(self) -> dict[str, list[tuple[str, float]]]:
        """Query word -> its translations with P(t | w), the likeliest first.

        By Bayes' rule: P(t | w) is T(w | t) p(t), divided by the sum over t.
        """
        joint = sp.csr_array(sp.diags_array(self.frequencies) @ self.table).T.tocsr()
        nested = _nested(joint, self.query_words, self.document_words)
        return {
            word: sorted(
                ((other, value / sum(found.values())) for other, value in found.items()),
                key=lambda item: (-item[1], item[0]),
            )
            for word, found in nested.items()
        }


def _nested(table, rows: list[str], columns: list[str]) -> dict[str, dict[str, float]]:
    found = {}
    for row, word in enumerate(rows):
        part = slice(table.indptr[row], table.indptr[row + 1])
        others, values = table.indices[part].tolist(), table.data[part].tolist()
        if others:
            found[word] = {columns[other]: value for other, value in zip(others, values)}
    return found
