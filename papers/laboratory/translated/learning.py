"""Choosing how queries are translated and by which parameters they rank, on validation queries."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.lexical.dictionary import Dictionary
from tf_smoothclir.lexical.learning import learn_table
from tf_smoothclir.lexical.sparse_tables import inverted
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.validation import Validation
from tf_smoothclir.lexical.word_vectors import WordVectors
from tf_smoothclir.papers.laboratory.translated.model import TranslatedQueries
from tf_smoothclir.papers.laboratory.translated.rankers import RANKERS, collection_of
from tf_smoothclir.papers.laboratory.translated.translation import by_nearest, by_table, literal

# Values of --query_translation.
TABLE, NEAREST, HUMAN, NONE = "table", "nearest", "human", "none"
TRANSLATIONS = (1, 2, 3, 5, 10)
# Parameters of each ranker, in the order in which they are chosen.
PARAMETERS = {
    "bm25": {"k1": (0.3, 0.6, 0.9, 1.2, 2.0), "b": (0.0, 0.25, 0.5, 0.75, 1.0)},
    "ql": {"mu": (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)},
}


def learn_translated_queries(
    texts: LexicalTexts,
    ranker: str,
    query_translation: str,
    *,
    seed: int,
    vectors: WordVectors | None = None,
    dictionary: Dictionary | None = None,
) -> TranslatedQueries:
    """Learns what translates the queries of a set, and chooses the parameters of a ranker."""
    begin = time.monotonic()
    validation = Validation(texts.retrieval_set)

    def best(models: Sequence[TranslatedQueries]) -> TranslatedQueries:
        if len(models) == 1:
            return models[0]
        qualities = [validation(model.rows(texts)) for model in models]
        return models[int(np.argmax(qualities))]

    if query_translation == TABLE:
        table = learn_table(texts, seed=seed, dictionary=dictionary).table
        translations = _by_tables(texts, table)
    else:
        translations = [_translation(texts, query_translation, vectors)]
    default = RANKERS[ranker]()
    model = best([TranslatedQueries(default, query_translation, one) for one in translations])
    for name, values in PARAMETERS[ranker].items():
        rankers = [dataclasses.replace(model.ranker, **{name: value}) for value in values]
        model = best([dataclasses.replace(model, ranker=one) for one in rankers])
    model = dataclasses.replace(model, seconds=round(time.monotonic() - begin, 3))
    logging.info("Lexical model: %s (%.1f s)", model.describe(), model.seconds)
    return model


def _by_tables(texts: LexicalTexts, table: sp.csr_array) -> list[sp.csr_array]:
    """Translations by a table T(w | t), to choose from."""
    of_words = collection_of(texts).occurrences
    found = inverted(table, of_words / max(1, of_words.sum()))
    return [by_table(found, texts.spelling, most) for most in TRANSLATIONS]


def _translation(
    texts: LexicalTexts, name: str, vectors: WordVectors | None
) -> sp.csr_array | None:
    """The translation of all names but TABLE."""
    if name == HUMAN:
        return None
    if name == NONE:
        return literal(texts.spelling)
    occurring = collection_of(texts).occurrences > 0
    return by_nearest(vectors.queries, vectors.documents, occurring, texts.spelling)
