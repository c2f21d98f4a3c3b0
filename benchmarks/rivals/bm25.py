"""BM25 by package bm25s (Lù 2024), with queries as they are and translated."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from benchmarks.rivals.rival import DEPTH, Ready
from benchmarks.rivals.texts import RivalTexts
from benchmarks.rivals.translations import Translations

# The package's default, Anserini's, and two for documents that were all cut at one length.
_K1_B = ((1.5, 0.75), (0.9, 0.4), (0.6, 1.0), (0.3, 1.0))
_SEVERAL = (3, 5, 10)
# BM25 adds up the words of a query, so a word that stands there twice counts twice: its
# translations share this many places by their probabilities.
_PLACES = 10

Translate = Callable[[str], list[str]]


def literal(texts: RivalTexts) -> Iterator[Ready]:
    """Yields BM25 with untranslated queries."""
    yield from _bm25(texts, [("", str.split)], 0.0)


def first_translation(texts: RivalTexts) -> Iterator[Ready]:
    """Yields BM25 with the likeliest translation of each word."""
    begin = time.monotonic()
    table = Translations.learn(texts).of_query_words
    learned = time.monotonic() - begin
    yield from _bm25(texts, [("", lambda query: translated(query, table, 1, 1))], learned)


def several_translations(texts: RivalTexts) -> Iterator[Ready]:
    """Yields BM25 with several translations of each word, by their probabilities."""
    begin = time.monotonic()
    table = Translations.learn(texts).of_query_words
    learned = time.monotonic() - begin
    ways = [
        (f"{most} translations, ", lambda query, most=most: translated(query, table, most, _PLACES))
        for most in _SEVERAL
    ]
    yield from _bm25(texts, ways, learned)


def translated(query: str, table: dict, most: int, places: int) -> list[str]:
    """The translations of a query."""
    found = []
    for word in query.split():
        options = table.get(word, [(word, 1.0)])[:most]
        whole = sum(probability for _, probability in options)
        for other, probability in options:
            found += [other] * round(places * probability / whole)
    return found


def _bm25(
    texts: RivalTexts, ways: Sequence[tuple[str, Translate]], learned: float
) -> Iterator[Ready]:
    import bm25s

    documents = [line.split() for line in texts.documents]
    for k1, b in _K1_B:
        begin = time.monotonic()
        index = bm25s.BM25(k1=k1, b=b)
        index.index(documents, show_progress=False)
        seconds = learned + time.monotonic() - begin
        for name, translate in ways:

            def rows(query_rows, index=index, translate=translate):
                return np.stack([_scores(index, translate(texts.queries[q])) for q in query_rows])

            def answer(query, index=index, translate=translate):
                words = translate(query)
                return index.retrieve([words], k=DEPTH, show_progress=False).documents[0]

            yield Ready(rows, answer, seconds, f"{name}k1 {k1:g}, b {b:g}")


def _scores(index, words: list[str]) -> np.ndarray:
    """`[documents]`; the package takes no query without words."""
    return index.get_scores(words or [""])
