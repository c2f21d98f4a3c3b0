"""Queries in the language of the documents, as sequences of words that a tower reads.

Each word of a query is replaced by its best translation, in the order of the query; a word that is
neither translated nor spelled alike is left out. The translation table is learned from training
pairs alone, so no translation is the text of a document.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.learning import learn_table
from tf_smoothclir.lexical.sparse_tables import inverted
from tf_smoothclir.lexical.text_reader import TextReader
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import NO_WORD, Words
from tf_smoothclir.papers.laboratory.translated import by_table


@dataclasses.dataclass(frozen=True)
class TokenRows:
    """Texts as token ids, one after the other."""

    values: np.ndarray  # `[tokens]` int32
    offsets: np.ndarray  # `[texts + 1]` int64, where each text begins and ends

    @classmethod
    def empty(cls, texts: int) -> TokenRows:
        """Texts without tokens."""
        return cls(np.zeros(0, np.int32), np.zeros(texts + 1, np.int64))

    @classmethod
    def of_words(cls, words: Words) -> TokenRows:
        """Leaves out the words without an id."""
        known = words.ids != NO_WORD
        before = np.append(0, np.cumsum(known))
        return cls(words.ids[known].astype(np.int32), before[words.offsets].astype(np.int64))

    def followed_by(self, other: TokenRows) -> TokenRows:
        """These texts, then others."""
        return TokenRows(
            np.concatenate([self.values, other.values]),
            np.concatenate([self.offsets, self.offsets[-1] + other.offsets[1:]]),
        )


@dataclasses.dataclass(frozen=True)
class WordTranslations:
    """The best translation of each word, in either direction; `NO_WORD` where there is none."""

    # `[query words]` int32, document words; query words as `TextReader` has them
    of_queries: np.ndarray
    of_documents: np.ndarray  # `[document words]` int32, words of the query vocabulary

    @classmethod
    def learn(cls, texts: LexicalTexts, seed: int) -> WordTranslations:
        """Learns a translation table from the training pairs of a set."""
        table = learn_table(texts, seed=seed).table
        occurrences = texts.occurrences
        to_documents = inverted(table, occurrences / max(1, occurrences.sum()))
        of_documents = _best(by_table(table, sp.csr_array(texts.spelling.T), 1))
        # Words that only documents have are no words of the query vocabulary.
        of_documents[of_documents >= texts.known] = NO_WORD
        return cls(_best(by_table(to_documents, texts.spelling, 1)), of_documents)


def translated_by_table(
    translations: WordTranslations, texts: LexicalTexts, reader: TextReader
) -> TokenRows:
    """Every query of a set, word by word in the language of the documents."""
    words = reader.words(text.text for text in texts.retrieval_set.source.queries())
    return TokenRows.of_words(dataclasses.replace(words, ids=translations.of_queries[words.ids]))


def _best(translation: sp.csr_array) -> np.ndarray:
    """The column of the one entry of each row, `NO_WORD` for an empty row."""
    columns = np.full(translation.shape[0], NO_WORD, np.int32)
    rows = np.repeat(np.arange(translation.shape[0]), np.diff(translation.indptr))
    columns[rows] = translation.indices
    return columns
