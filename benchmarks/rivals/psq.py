"""Probabilistic structured queries by package fast-psq (Yang et al. 2024)."""

from __future__ import annotations

import collections
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.rivals.rival import DEPTH, Ready
from benchmarks.rivals.texts import RivalTexts
from benchmarks.rivals.translations import Translations

_ALPHAS = (0.03, 0.1, 0.3)  # 0.1 is the package's default
# What a document word also stands for itself, beside its translations; 0 is the package's recipe.
_SPELLED_ALIKE = (0.0, 0.3)


def variants(texts: RivalTexts) -> Iterator[Ready]:
    """Yields PSQ with several shares of the language at large and of words spelled alike."""
    from fast_psq.search import search_in_shard
    from fast_psq.vectorizer import PSQVectorizer

    begin = time.monotonic()
    dictionary = Translations.learn(texts).of_document_words()
    learned = time.monotonic() - begin
    document_rows = np.arange(len(texts.documents))
    for spelled_alike in _SPELLED_ALIKE:
        begin = time.monotonic()
        vectorizer = PSQVectorizer.from_dict(
            _with_own_spelling(dictionary, texts.documents, spelled_alike),
            source_tokenizer=str.split,
            target_tokenizer=str.split,
        )
        documents = vectorizer.make_source_vectors(texts.documents)
        documents.resize(len(texts.documents), documents.shape[1])  # it drops empty ones at the end
        queries = vectorizer.make_target_vectors(texts.queries)
        queries.resize(len(texts.queries), queries.shape[1])
        shared = learned + time.monotonic() - begin
        for alpha in _ALPHAS:
            begin = time.monotonic()
            vectorizer.alpha = alpha
            _load_word_counts(vectorizer, texts)
            index = vectorizer.translate(documents).tocsr().astype(np.float32)

            def rows(query_rows, queries=queries, index=index):
                return (queries[query_rows] @ index).toarray().astype(np.float32)

            def answer(query, vectorizer=vectorizer, index=index):
                known = any(word in vectorizer.target_vocab_inv for word in query.split())
                if not known:  # the package takes no query without known words
                    return document_rows[:DEPTH]
                vector = vectorizer.make_target_vectors([query])
                return search_in_shard(vector, (document_rows, index), k=DEPTH)[0]

            seconds = shared + time.monotonic() - begin
            setting = f"alpha {alpha:g}, share of words spelled alike {spelled_alike:g}"
            yield Ready(rows, answer, seconds, setting)


def _with_own_spelling(dictionary, documents, share: float):
    if not share:
        return dictionary
    mixed = {}
    for word in {word for line in documents for word in line.split()}:
        mixed[word] = {w: (1 - share) * p for w, p in dictionary.get(word, {}).items()}
        mixed[word][word] = mixed[word].get(word, 0.0) + share
    return mixed


def _load_word_counts(vectorizer, texts: RivalTexts) -> None:
    """Gives the package the word counts of the training queries, as the file that it reads."""
    training = texts.retrieval_set.queries_in("train")
    found = collections.Counter(word for row in training for word in texts.queries[row].split())
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "counts.txt")
        path.write_text("".join(f"{n} {word}\n" for word, n in found.items()), encoding="utf-8")
        vectorizer.load_query_term_importance(str(path))
