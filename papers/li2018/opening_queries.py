"""Queries made of documents, with the documents that BM25 finds for them as relevant ones.

The stand-in for the first training stage of Li and Cheng 2018, section 4.1.2, whose queries come
from a search engine's log: the opening of a document is a query in the language of the documents,
its word-by-word translation the query itself. Documents that a validation or test query is judged
with make no queries.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import TokenizedSet
from tf_smoothclir.lexical.texts import LexicalTexts
from tf_smoothclir.lexical.words import Words
from tf_smoothclir.papers.laboratory.translated import Bm25, collection_of
from tf_smoothclir.papers.li2018.translations import TokenRows, WordTranslations
from tf_smoothclir.protocols.scorer import query_chunks
from tf_smoothclir.text.vocabulary import UNKNOWN_ID

POSITIVES = 3  # relevant documents of each query; the paper gives no number
NONE_FOUND = -1
_SENTENCE_ENDS = (".", "!", "?", "。", "！", "？")
_FEWEST_WORDS = 3


@dataclasses.dataclass(frozen=True)
class OpeningQueries:
    """Queries made of documents."""

    queries: TokenRows  # in the language of the queries
    translations: TokenRows  # the same in the language of the documents: openings of documents
    # `[queries, POSITIVES]` int32, document rows, never that of the query's own; `NONE_FOUND`
    # after the last document that shares a word with the query
    relevant: np.ndarray

    @classmethod
    def of(
        cls,
        tokenized_set: TokenizedSet,
        texts: LexicalTexts,
        words: WordTranslations,
        max_query_tokens: int,
    ) -> OpeningQueries:
        """Makes a query of each document that no validation or test query is judged with."""
        retrieval_set = tokenized_set.retrieval_set
        of_training = retrieval_set.splits[retrieval_set.query_rows] == SPLITS.index("train")
        held_out = np.zeros(len(retrieval_set.document_ids), bool)
        held_out[retrieval_set.document_rows[~of_training]] = True
        openings, rows = _openings(tokenized_set, np.flatnonzero(~held_out), max_query_tokens)
        translated = words.of_documents[
            np.where(openings.values < texts.documents.size, openings.values, 0)
        ]
        queries = TokenRows.of_words(Words(translated, openings.offsets, texts.known))
        relevant = _found_by_bm25(texts, openings, rows)
        return cls(queries, openings, relevant)


def _openings(
    tokenized_set: TokenizedSet, rows: np.ndarray, most: int
) -> tuple[TokenRows, np.ndarray]:
    """The first sentences of documents and the rows of those that have one."""
    store, vocabulary = tokenized_set.tokens("document"), tokenized_set.vocabulary("document")
    places = {word: place for place, word in enumerate(vocabulary)}
    ends = [places[mark] for mark in _SENTENCE_ENDS if mark in places]
    openings, kept = [], []
    for row in rows:
        tokens = store[row][:most]
        stops = np.flatnonzero(np.isin(tokens, ends)) + 1
        stops = stops[stops >= _FEWEST_WORDS]
        opening = tokens[: stops[0]] if len(stops) else tokens
        if np.sum(opening > UNKNOWN_ID) >= _FEWEST_WORDS:
            openings.append(np.asarray(opening, np.int32))
            kept.append(row)
    offsets = np.append(0, np.cumsum([len(opening) for opening in openings])).astype(np.int64)
    values = np.concatenate(openings) if openings else np.zeros(0, np.int32)
    return TokenRows(values, offsets), np.array(kept, np.int64)


def _found_by_bm25(texts: LexicalTexts, queries: TokenRows, excluded: np.ndarray) -> np.ndarray:
    """`[queries, POSITIVES]`, what BM25 ranks first besides the query's own document."""
    size = texts.documents.size
    known = np.where((queries.values > UNKNOWN_ID) & (queries.values < size), queries.values, 0)
    bags: sp.csr_array = Words(known.astype(np.int32), queries.offsets, size).matrix()
    scores_of = Bm25()(collection_of(texts)).rows(bags)
    positives = np.full((len(excluded), POSITIVES), NONE_FOUND, np.int32)
    for begin, rows in query_chunks(np.arange(len(excluded)), texts.documents.offsets.size - 1):
        scores = scores_of(rows)
        scores[np.arange(len(rows)), excluded[rows]] = -np.inf
        most = min(POSITIVES, scores.shape[1])
        best = np.argpartition(-scores, most - 1, axis=1)[:, :most]
        order = np.argsort(-np.take_along_axis(scores, best, axis=1), axis=1, kind="stable")
        best = np.take_along_axis(best, order, axis=1)
        shares_words = np.take_along_axis(scores, best, axis=1) > 0
        positives[begin : begin + len(rows), :most] = np.where(shares_words, best, NONE_FOUND)
    return positives
