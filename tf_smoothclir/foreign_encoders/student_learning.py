"""Learning a student of a foreign encoder: by the queries it is to read, their words and spans.

The encoder answers whatever it is asked, so besides the training queries it reads each of their
words alone, and some words in a row. Nothing needs a judgment. With the weights x(q) of the words
of a text, of length 1, and the sums U of the vectors of words and their n-grams, the tables E
minimise the squared errors of the vectors of the encoder, without the mean μ of the queries,

    Σ_q a(q) ‖x(q) U - (v(q) - μ)‖² + λ ‖E‖²,

which conjugate gradients find: ridge regression.
"""

import collections
import time
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp
from absl import logging

from tf_smoothclir.encoder.tokenizer import has_letters, tokens_of, words_of
from tf_smoothclir.encoder.word_evidence import ngram_buckets
from tf_smoothclir.foreign_encoders.student import NGRAMS, Student
from tf_smoothclir.lexical.sparse_tables import ends_of
from tf_smoothclir.utils.errors import input_error
from tf_smoothclir.utils.progress import progress_bar

_MOST_PIECES = 20_000
_SPANS = 6  # of each query
_LENGTHS = (2, 10)  # of spans, in words
_OF_PIECE = 0.4  # what a piece counts; a query has 1
_RIDGE = 0.1  # λ
_ROUNDS = 40
_COLUMNS = 64  # of vectors, at once
_LARGEST = 0.05  # number of a table: the tanh of a tower changes numbers so small by a thousandth


def learn_student(
    encode: Callable[[Sequence[str]], np.ndarray], queries: Sequence[str], seed: int
) -> Student:
    """Learns from an encoder of queries, from texts to unit vectors `[texts, dim]`."""
    queries = [*dict.fromkeys(queries)]
    if not queries:
        reason = "there are no queries for a student to learn from"
        raise input_error("--distill", reason, "Add some to the set; they need no judgments")
    texts = [*queries, *pieces_of(queries, seed)]
    targets = encode(texts)
    begin, targets = time.monotonic(), targets - targets[: len(queries)].mean(axis=0)
    counted = np.where(np.arange(len(texts)) < len(queries), 1.0, _OF_PIECE)
    of_texts = [collections.Counter(tokens_of(text)) for text in texts]
    words = sorted({word for of_text in of_texts for word in of_text})
    weights, idf = _weights(of_texts, words)
    rows = np.sqrt(counted / np.maximum(weights.power(2).sum(axis=1), 1e-9))
    weights = sp.csr_array(sp.diags_array(rows) @ weights, dtype=np.float32)
    tables = _ridge(weights, _ngrams(words), np.sqrt(counted)[:, np.newaxis] * targets)
    scale = _LARGEST / max(1e-9, *(np.abs(table).max(initial=0) for table in tables))
    own, of_ngrams = (scale * table for table in tables)
    logging.info(
        "A student: %d queries, %d words, %d texts in all (%.1f s)",
        *(len(queries), len(words), len(texts), time.monotonic() - begin),
    )
    raw = np.log(np.expm1(idf))[:, np.newaxis].astype(np.float32)  # the inverse of softplus
    own = np.concatenate([np.zeros((2, own.shape[1]), np.float32), own])
    arrays = {"words": np.array(words, str), "token_weights": raw}
    return Student({**arrays, "embeddings": own, "ngram_embeddings": of_ngrams})


def pieces_of(queries: Sequence[str], seed: int) -> list[str]:
    """The words of some queries, the most frequent first, and words in a row, drawn by chance."""
    random, frequency, spans = np.random.default_rng(seed), collections.Counter(), []
    shortest, longest = _LENGTHS
    for place in random.permutation(len(queries)):
        query = queries[place]
        words = words_of(query)
        frequency.update({word[0] for word in words if has_letters(word[0])})
        for begin, length in random.integers(
            (0, shortest), (max(1, len(words) - 1), longest + 1), size=(_SPANS, 2)
        ):
            if some := words[begin : begin + length]:
                spans.append(query[some[0].start() : some[-1].end()])
    known = set(queries)
    pieces = dict.fromkeys([*(word for word, _ in frequency.most_common()), *spans])
    return [piece for piece in pieces if piece not in known][:_MOST_PIECES]


def _weights(
    of_texts: Sequence[collections.Counter[str]], words: Sequence[str]
) -> tuple[sp.csr_array, np.ndarray]:
    """Weights of words, `[texts, words]`, and of each word once, from padding and unknown on."""
    places = {word: place for place, word in enumerate(words)}
    ends = ends_of(np.array([len(of_text) for of_text in of_texts]))
    columns = np.array([places[word] for of_text in of_texts for word in of_text], np.int32)
    counts = np.array([count for of_text in of_texts for count in of_text.values()], np.float64)
    frequency = np.bincount(columns, minlength=len(words))
    idf = np.log1p(len(of_texts) / np.append([1, 1], frequency))
    weights = counts * idf[2 + columns], columns, ends
    return sp.csr_array(weights, shape=(len(of_texts), len(words))), idf


def _ngrams(words: Sequence[str]) -> sp.csr_array:
    """What the vector of each n-gram counts in that of each word, `[words, buckets]`."""
    buckets, numbers = ngram_buckets(words, NGRAMS.buckets, NGRAMS.shortest, NGRAMS.longest)
    values = np.repeat(1 / np.sqrt(np.maximum(1, numbers)), numbers).astype(np.float32)
    return sp.csr_array((values, buckets, ends_of(numbers)), shape=(len(words), NGRAMS.buckets))


def _ridge(
    weights: sp.csr_array, ngrams: sp.csr_array, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Tables of words and of n-grams, `[words, dim]` and `[buckets, dim]` float32."""
    begins = range(0, targets.shape[1], _COLUMNS)
    with progress_bar(len(begins), "Student", "steps") as bar:
        solved = []
        for begin in begins:
            solved.append(_solved(weights, ngrams, targets[:, begin : begin + _COLUMNS]))
            bar.update(1)
    tables = np.concatenate(solved, axis=1)
    return tables[: len(ngrams.indptr) - 1], tables[len(ngrams.indptr) - 1 :]


def _solved(weights: sp.csr_array, ngrams: sp.csr_array, targets: np.ndarray) -> np.ndarray:
    """The tables one below the other, of some columns, by the method of conjugate gradients."""
    words = weights.shape[1]

    def added(tables: np.ndarray) -> np.ndarray:
        return weights @ (tables[:words] + ngrams @ tables[words:])

    def spread(errors: np.ndarray) -> np.ndarray:  # the transpose of `added`
        of_words = weights.T @ errors
        return np.concatenate([of_words, ngrams.T @ of_words])

    residuals = directions = spread(targets.astype(np.float32))
    tables, left = np.zeros_like(residuals), np.square(residuals).sum(axis=0)
    for _ in range(_ROUNDS):
        changes = spread(added(directions)) + _RIDGE * directions
        steps = left / np.maximum(np.sum(directions * changes, axis=0), 1e-30)
        tables, residuals = tables + steps * directions, residuals - steps * changes
        before, left = left, np.square(residuals).sum(axis=0)
        directions = residuals + left / np.maximum(before, 1e-30) * directions
    return tables
