"""A tokenized set as lexical models read it."""

from __future__ import annotations

import copy
import dataclasses
import functools
import itertools

import numpy as np

from tf_smoothclir.data.retrieval_set import RetrievalSet
from tf_smoothclir.data.tokenized_set import ROLES, TokenizedSet
from tf_smoothclir.encoder.tokenizer import has_letters
from tf_smoothclir.lexical.feedback import Feedback, tf_idf
from tf_smoothclir.lexical.model import LexicalModel
from tf_smoothclir.lexical.plain_reader import PlainReader
from tf_smoothclir.lexical.postings import Postings
from tf_smoothclir.lexical.related_words import lookalikes, similar_words
from tf_smoothclir.lexical.words import NO_WORD, Words, document_words, same_spelling
from tf_smoothclir.protocols.scorer import RowRetriever, ScoreRows
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils import sparse as sp


class LexicalTexts:
    """A tokenized set as lexical models read it."""

    def __init__(self, tokenized_set: TokenizedSet, max_query_tokens: int):
        self.vocabularies = tuple(tokenized_set.vocabulary(role) for role in ROLES)
        self.vocabulary_dir, self.max_query_tokens = tokenized_set.vocabulary_dir, max_query_tokens
        self._reader = PlainReader(
            self.vocabulary_dir, "query", max_query_tokens, tokenized_set.settings.pretokenized
        )
        self._read_queries(tokenized_set.retrieval_set)
        self.documents: Words = document_words(tokenized_set)
        # `[document words, query words]`, of `same_spelling`.
        self.spelling: sp.csr_array = same_spelling(*self.vocabularies)
        self._latest: tuple = (None,)  # the latest model, with its postings, which take seconds
        # Ids from there on are words that only documents have.
        self.known = len(self.vocabularies[0])

    def _read_queries(self, retrieval_set: RetrievalSet) -> None:
        self.retrieval_set = retrieval_set
        texts = (text.text for text in retrieval_set.source.queries())
        self.query_words: Words = self._reader.batch(texts)
        self.queries: sp.csr_array = self.query_words.matrix()  # `[queries, query words]`

    def with_queries_of(self, retrieval_set: RetrievalSet) -> LexicalTexts:
        """The same documents with the queries of another set."""
        other = copy.copy(self)
        other._read_queries(retrieval_set)
        return other

    @functools.cached_property
    def are_signs(self) -> np.ndarray:
        """`[query words]` bool, which have neither letter nor digit."""
        words = itertools.chain.from_iterable(self.vocabularies)
        return ~np.fromiter(map(has_letters, words), bool)

    @functools.cached_property
    def similar_words(self) -> tuple[sp.csr_array, sp.csr_array]:
        """Similarity of spelling of document words, and of query words, by `related_words`."""
        special = [""] * (UNKNOWN_ID + 1)
        queries, documents = (vocabulary[len(special) :] for vocabulary in self.vocabularies)
        shared, documents = queries == documents, similar_words(special + documents)
        queries = documents.copy() if shared else similar_words(special + queries)
        # Words that only documents have are in no training query.
        queries.resize(self.queries.shape[1], self.queries.shape[1])
        return documents, queries

    @functools.cached_property
    def lookalikes(self) -> sp.csr_array:
        """Of both languages, `[document words, query words]`; none in vocabularies of their own."""
        queries, documents = self.vocabularies
        if queries != documents:
            return sp.csr_array(self.spelling.shape, dtype=np.float32)
        near = lookalikes(self.similar_words[0])
        near.resize(self.spelling.shape)
        return near

    @functools.cached_property
    def alike(self) -> sp.csr_array:
        """Matches of the same spelling, and lookalikes, `[document words, query words]`."""
        return self.spelling + self.lookalikes

    @functools.cached_property
    def _feedback(self) -> Feedback:
        """Feedback of weight 1."""
        return Feedback.of(tf_idf(self.documents.matrix()), 1.0, self.retrieval_set.tie_order)

    def feedback(self, weight: float = 1.0) -> Feedback:
        """Feedback of a weight over the documents of the set."""
        return dataclasses.replace(self._feedback, weight=weight)

    @property
    def occurrences(self) -> np.ndarray:
        """`[document words]`, how often each word stands in the documents."""
        counts = np.bincount(self.documents.ids, minlength=self.documents.size)
        counts[NO_WORD] = 0
        return counts

    def retriever(self, model: LexicalModel) -> RowRetriever:
        """A model over the set."""
        if self._latest[0] is not model:
            passages = model.passages(self.documents)
            postings = Postings.of(model.impacts(passages, self.spelling), passages.firsts)
            self._latest = model, postings
        sums = self._latest[1].sums
        return self.with_feedback(lambda rows: sums(self.queries[rows]), model.feedback)

    def with_feedback(self, rows: ScoreRows, weight: float) -> RowRetriever:
        """Retriever of the set by some scores and feedback; none for weight 0."""
        feedback = self.feedback(weight).added_to if weight else None
        return RowRetriever(rows, self.retrieval_set.tie_order, feedback, self.known_words)

    def known_words(self, query_rows: np.ndarray) -> np.ndarray:
        """`[queries]`, how many words of each query have an id."""
        return self.queries[query_rows].sum(axis=1)
