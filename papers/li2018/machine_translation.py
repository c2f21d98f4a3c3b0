"""MT of Li and Cheng 2018: queries translated word by word, then BM25; a stand-in.

The words are those of a translation table that is learned from the training pairs. Validation
chooses how many translations of a word count, then the parameters of BM25.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.learning import TableLearner
from tf_smoothclir.lexical.sparse_tables import inverted
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.papers.laboratory.cells import Cell, opened_set
from tf_smoothclir.papers.laboratory.translated import Bm25, by_table, collection_of
from tf_smoothclir.protocols.scorer import RowRetriever, ScoreRows
from tf_smoothclir.settings.run import RunSettings

TRANSLATIONS = (1, 2, 3, 5, 10)
PARAMETERS = {"k1": (0.3, 0.6, 0.9, 1.2, 2.0), "b": (0.0, 0.25, 0.5, 0.75, 1.0)}


class TranslatedCell(Cell):
    """MT on one set with one seed."""

    @property
    def parts(self):
        return self.study.name, "translated", f"s{self.seed}"

    @property
    def values(self):
        read = RunSettings(self.settings.data, self.settings.text)
        return [read.values_with_effect(), self.settings.training.negatives]

    def compute(self):
        begin, tokenized_set = time.monotonic(), opened_set(self.settings)
        texts = LexicalTexts(tokenized_set, self.settings.text.max_query_tokens)
        retrieval_set = tokenized_set.retrieval_set
        rows, choices = chosen(texts, TableLearner(texts, seed=self.seed).table().table)
        retriever = RowRetriever(rows, retrieval_set.tie_order)
        training = {"seconds": round(time.monotonic() - begin, 3), **choices}
        self.measure(retrieval_set, retriever, training)


def chosen(texts: LexicalTexts, table: sp.csr_array) -> tuple[ScoreRows, dict[str, float]]:
    """The scores of a set by a table P(w | t) and BM25, and what validation chose."""
    validation, collection = Validation(texts.retrieval_set), collection_of(texts)
    of_words = collection.occurrences
    to_documents = inverted(table, of_words / max(1, of_words.sum()))

    def rows(most: int, ranker: Bm25) -> ScoreRows:
        translation = by_table(to_documents, texts.spelling, most)
        return ranker(collection).rows(sp.csr_array(texts.queries @ translation))

    def best(candidates: Sequence, rows_of: Callable[..., ScoreRows]):
        return candidates[
            int(np.argmax([validation(rows_of(candidate)) for candidate in candidates]))
        ]

    ranker = Bm25()
    most = best(TRANSLATIONS, lambda candidate: rows(candidate, ranker))
    for name, values in PARAMETERS.items():
        candidates = [dataclasses.replace(ranker, **{name: value}) for value in values]
        ranker = best(candidates, lambda candidate: rows(most, candidate))
    return rows(most, ranker), {"translations": most, **dataclasses.asdict(ranker)}
