"""Bilingual word vectors by fastText on merged and shuffled pairs (Vulić and Moens, SIGIR 2015).

The words of a query and of its document are mixed into one line, so that words of one language are
the context of those of the other. A text is the mean of its word vectors (their BWE-Agg-Add), or
the mean weighted by IDF (BWE-Agg-IDF). Names and numbers share a vector in both languages.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.rivals.rival import Ready, best_documents, unit_vectors
from benchmarks.rivals.texts import RivalTexts, counts

_SHUFFLES = 12
_DIMENSIONS = 128
_WINDOW = 10
_RATE = 0.05
_SAMPLING = 1e-3  # of frequent words
_SEED = 13


def variants(texts: RivalTexts) -> Iterator[Ready]:
    """Yields a model with both ways to add up word vectors."""
    begin = time.monotonic()
    model = _trained(texts)
    numbers = {word: number for number, word in enumerate(model.get_words())}
    vectors = unit_vectors(np.stack([model.get_word_vector(word) for word in numbers]))
    bags = counts(texts.queries, numbers), counts(texts.documents, numbers)
    trained = time.monotonic() - begin
    frequencies = np.bincount(bags[1].indices, minlength=len(numbers))
    rarities = np.log((1 + len(texts.documents)) / (1 + frequencies))
    for name, weights in (("add", np.ones(len(numbers))), ("idf", rarities)):
        begin = time.monotonic()
        weighted = (vectors * weights[:, None]).astype(np.float32)
        queries, documents = (unit_vectors(bag @ weighted) for bag in bags)

        def rows(query_rows, queries=queries, documents=documents):
            return queries[query_rows] @ documents.T

        def answer(query, weighted=weighted, documents=documents):
            known = [numbers[word] for word in query.split() if word in numbers]
            return best_documents(documents @ weighted[known].sum(axis=0))

        yield Ready(rows, answer, trained + time.monotonic() - begin, name)


def _trained(texts: RivalTexts):
    """Trains on every pair several times, shuffled anew each time, so that windows stay small."""
    import fasttext

    generator = np.random.default_rng(_SEED)
    lines = [f"{texts.queries[q]} {texts.documents[d]}".split() for q, d in texts.pairs]
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "pairs.txt")
        with path.open("w", encoding="utf-8") as file:
            for _ in range(_SHUFFLES):
                file.writelines(" ".join(generator.permutation(line)) + "\n" for line in lines)
        return fasttext.train_unsupervised(
            str(path),
            model="skipgram",
            dim=_DIMENSIONS,
            ws=_WINDOW,
            lr=_RATE,
            t=_SAMPLING,
            epoch=1,
            minCount=1,
            minn=0,
            maxn=0,
            bucket=0,
            thread=os.cpu_count(),
            verbose=0,
        )
