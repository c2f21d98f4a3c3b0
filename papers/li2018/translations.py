"""Queries as sequences of words of the other language, and queries made of documents.

Each word of a text is replaced by its best translation, in the order of the text; a word that is
neither translated nor spelled alike is left out. The translation table is learned from training
pairs alone, so no translation is the text of a document.

Queries made of documents are the stand-in for the first training stage of Li and Cheng 2018,
section 4.1.2, whose queries come from a search engine's log: the opening of a document is a query
in the language of the documents, its word-by-word translation the query itself, and the documents
that BM25 finds for it are relevant. Documents that a validation or test query is judged with make
no queries.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp
import tensorflow as tf

from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.lexical.learning import TableLearner
from tf_smoothclir.lexical.sparse_tables import entry_rows, inverted
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import NO_WORD, Words
from tf_smoothclir.papers.laboratory.translated import Bm25, by_table, collection_of
from tf_smoothclir.protocols.scorer import query_chunks
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

POSITIVES = 3  # relevant documents of each query; the paper gives no number
NONE_FOUND = -1
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
_FEWEST_WORDS = 3


@dataclasses.dataclass(frozen=True)
class WordTranslations:
    """The best translation of each word, in either direction; `NO_WORD` where there is none."""

    # `[query words]` int32, document words; query words as `TextReader` has them
    of_queries: np.ndarray
    of_documents: np.ndarray  # `[document words]` int32, words of the query vocabulary

    @classmethod
    def learn(cls, texts: LexicalTexts, seed: int) -> WordTranslations:
        """Learns a translation table from the training pairs of a set."""
        table = TableLearner(texts, seed=seed).table().table
        occurrences = texts.occurrences
        to_documents = inverted(table, occurrences / max(1, occurrences.sum()))
        of_documents = _best(by_table(table, sp.csr_array(texts.spelling.T), 1))
        # Words that only documents have are no words of the query vocabulary.
        of_documents[of_documents >= texts.known] = NO_WORD
        return cls(_best(by_table(to_documents, texts.spelling, 1)), of_documents)

    def queries(self, texts: LexicalTexts) -> tf.RaggedTensor:
        """Every query of a set in the language of the documents, `[queries, words]` int32."""
        return _known(self.of_queries[texts.query_words.ids], texts.query_words.offsets)


def _best(translation: sp.csr_array) -> np.ndarray:
    """The column of the one entry of each row, `NO_WORD` for an empty row."""
    columns = np.full(translation.shape[0], NO_WORD, np.int32)
    columns[entry_rows(translation)] = translation.indices
    return columns


def _known(ids: np.ndarray, offsets: np.ndarray) -> tf.RaggedTensor:
    """Texts, one after the other, without the words that have no id."""
    words = tf.RaggedTensor.from_row_splits(ids, offsets)
    return tf.ragged.boolean_mask(words, words != NO_WORD)


@dataclasses.dataclass(frozen=True)
class OpeningQueries:
    """Queries made of documents."""

    queries: tf.RaggedTensor  # `[queries, words]` int32, in the language of the queries
    # the same in the language of the documents: openings of documents
    translations: tf.RaggedTensor
    # `[queries, POSITIVES]` int32, document rows, never that of the query's own; `NONE_FOUND`
    # after the last document that shares a word with the query
    relevant: np.ndarray

    @classmethod
    def of(
        cls, tokenized_set: TokenizedSet, texts: LexicalTexts, words: WordTranslations
    ) -> OpeningQueries:
        """Makes a query of each document that no validation or test query is judged with."""
        retrieval_set = tokenized_set.retrieval_set
        of_training = retrieval_set.splits[retrieval_set.query_rows] == SPLITS.index("train")
        held_out = np.zeros(len(retrieval_set.document_ids), bool)
        held_out[retrieval_set.document_rows[~of_training]] = True
        store, vocabulary = tokenized_set.tokens("document"), tokenized_set.vocabulary("document")
        ends = np.flatnonzero(np.isin(vocabulary, _SENTENCE_ENDS))
        openings = {}
        for row in np.flatnonzero(~held_out):
            tokens = store[row][: texts.max_query_tokens]
            stops = np.flatnonzero(np.isin(tokens, ends)) + 1
            opening = tokens[: min(stops[stops >= _FEWEST_WORDS], default=len(tokens))]
            if np.sum(opening > UNKNOWN_ID) >= _FEWEST_WORDS:
                openings[row] = np.asarray(opening, np.int32)
        ids = np.concatenate([np.zeros(0, np.int32), *openings.values()])
        offsets = np.cumsum([0, *map(len, openings.values())])
        known = np.where(ids < texts.documents.size, ids, 0)
        relevant = _found_by_bm25(texts, Words(known, offsets, texts.documents.size), [*openings])
        whole = tf.RaggedTensor.from_row_splits(ids, offsets)
        return cls(_known(words.of_documents[known], offsets), whole, relevant)


def _found_by_bm25(texts: LexicalTexts, queries: Words, excluded: list[int]) -> np.ndarray:
    """`[queries, POSITIVES]`, what BM25 ranks first besides the query's own document."""
    known = np.where(queries.ids > UNKNOWN_ID, queries.ids, NO_WORD)
    bags = dataclasses.replace(queries, ids=known).matrix()
    scores_of = Bm25()(collection_of(texts)).rows(bags)
    excluded, documents = np.array(excluded, np.int64), texts.documents.offsets.size - 1
    positives = np.full((len(excluded), POSITIVES), NONE_FOUND, np.int32)
    for begin, rows in query_chunks(np.arange(len(excluded)), documents):
        scores = scores_of(rows)
        scores[np.arange(len(rows)), excluded[rows]] = -np.inf
        most = min(POSITIVES, scores.shape[1])
        best = np.argpartition(-scores, most - 1, axis=1)[:, :most]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
        best = np.take_along_axis(best, order, axis=1)
        shares_words = np.take_along_axis(scores, best, axis=1) > 0
        positives[begin : begin + len(rows), :most] = np.where(shares_words, best, NONE_FOUND)
    return positives
