"""Where words occur: vectors of two languages in one space, and inverse document frequencies.

The vectors are made from the judged pairs alone, by random indexing of parallel texts (Sahlgren
and Karlgren 2005): words that occur in the same pairs get similar vectors, on whichever side.
"""

import dataclasses
import functools
from collections.abc import Mapping, Sequence

import numpy as np
import tensorflow as tf

from tf_smoothclir.data.candidate_lists import candidate_lists
from tf_smoothclir.data.sources.source import SPLITS
from tf_smoothclir.data.tokenized_set import RaggedStore, TokenizedSet
from tf_smoothclir.text.vocabulary import UNKNOWN_ID
from tf_smoothclir.utils import sparse as sp

_TEXTS_PER_CHUNK = 1 << 14
_ALL = slice(None)


@dataclasses.dataclass(frozen=True)
class OccurrencesOfNgrams:
    """The words that n-grams are part of, and how often these occur."""

    words: np.ndarray  # `[pairs of word and n-gram]`
    buckets: np.ndarray  # `[pairs of word and n-gram]`, sorted
    counts: np.ndarray  # `[buckets]`, the sum over the words

    def sums(self, of_words: np.ndarray) -> np.ndarray:
        """`[buckets, dim]` float32, the sum over the words of an n-gram."""
        number = len(self.counts)
        return np.asarray(
            tf.sparse.segment_sum(of_words, self.words, self.buckets, num_segments=number)
        )


@dataclasses.dataclass(frozen=True)
class Occurrences:
    """The places where tokens occur, each represented by a random vector."""

    tokens: np.ndarray  # `[occurrences]`, sorted
    places: np.ndarray  # `[occurrences]`
    of_places: np.ndarray  # `[places, dim]` float32, the vectors of places
    size: int  # number of tokens

    @functools.cached_property
    def counts(self) -> np.ndarray:
        """`[tokens]` int64, the number of places."""
        return np.bincount(self.tokens, minlength=self.size)

    def sums(self, dims: slice = _ALL) -> np.ndarray:
        """`[tokens, dim]` float32, the sum of the vectors of a token's places."""
        vectors = self.of_places[:, dims]
        sums = tf.sparse.segment_sum(vectors, self.places, self.tokens, num_segments=self.size)
        return np.asarray(sums)  # a view

    def vectors(self) -> np.ndarray:
        """`[tokens, dim]` float32; zeros for a token that occurs nowhere."""
        return vectors_of(self.sums(), self.counts)

    def of_ngrams(self, ngrams: RaggedStore, buckets: int) -> OccurrencesOfNgrams:
        """Those of n-grams, where words with them occur."""
        of_words = np.asarray(ngrams.values[: ngrams.offsets[self.size]])
        order = np.argsort(of_words, kind="stable")
        words = np.repeat(np.arange(self.size), ngrams.lengths[: self.size])[order]
        of_words = of_words[order]
        counts = np.bincount(of_words, self.counts[words], minlength=buckets)
        return OccurrencesOfNgrams(words, of_words, counts)


def vectors_of(sums: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """`[tokens, dim]` float32: sums over a token's n places, divided by √n; or zeros."""
    # Entries have the variance 1 - n / N for N places in all: a token that occurs everywhere says
    # nothing. The inner product of two, divided by `dim`, estimates the correlation (φ) of
    # occurring in the same places.
    return sums / np.sqrt(np.maximum(counts, 1), dtype=np.float32)[:, np.newaxis]


def occurrences(
    tokenized_set: TokenizedSet, roles: Sequence[str], *, size: int, dim: int, seed: int
) -> Occurrences:
    """Occurrences of tokens in the training pairs of the highest grade."""
    # Vectors of places are drawn from N(0, 1) and centred.
    tokens, places, places_in_all = _places(tokenized_set, roles, size)
    random = np.random.default_rng(seed).standard_normal((places_in_all, dim), np.float32)
    random -= random.mean(axis=0)
    return Occurrences(tokens, places, random, size)


def occurrences_beside(
    tokenized_set: TokenizedSet, roles: Sequence[str], *, size: int, tables: Mapping
) -> Occurrences:
    """The same, where the vector of a place is the mean of those of its known tokens."""
    # `tables` are those of roles that share a vocabulary, `[known tokens, dim]`.
    sums, counts = 0, 0
    for of_table, table in tables.items():
        tokens, places, places_in_all = _places(tokenized_set, of_table, len(table))
        ones = np.ones(len(tokens), np.float32)
        has = sp.csr_array((ones, (places, tokens)), shape=(places_in_all, len(table)))
        sums, counts = sums + has @ table, counts + has.sum(axis=1)
    tokens, places, _ = _places(tokenized_set, roles, size)
    means = sums / np.maximum(counts, 1)[:, np.newaxis]
    means -= means.mean(axis=0)
    return Occurrences(tokens, places, means, size)


def _places(
    tokenized_set: TokenizedSet, roles: Sequence[str], size: int
) -> tuple[np.ndarray, np.ndarray, int]:
    """Tokens, sorted, the places where they occur, and the number of all places."""
    # Each training query is a place, where it and its best documents occur.
    lists = candidate_lists(tokenized_set.retrieval_set, "train", negatives=0, seed=0)
    is_best = lists.grades == tokenized_set.retrieval_set.num_grades - 1
    places_in_all = len(lists.query_rows)
    every = np.arange(places_in_all)
    texts = {
        "query": (every, lists.query_rows),
        "document": (
            np.repeat(every, np.diff(lists.offsets))[is_best],
            lists.document_rows[is_best],
        ),
    }
    keys = [np.zeros(0, np.int64)]
    for role in roles:
        store, (places, rows) = tokenized_set.tokens(role), texts[role]
        for begin in range(0, len(rows), _TEXTS_PER_CHUNK):
            of_chunk = slice(begin, begin + _TEXTS_PER_CHUNK)
            tokens, lengths = store.rows(rows[of_chunk])
            is_known = (tokens > UNKNOWN_ID) & (tokens < size)
            key = tokens.astype(np.int64) * places_in_all + np.repeat(places[of_chunk], lengths)
            keys.append(np.unique(key[is_known]))
    return *np.divmod(np.unique(np.concatenate(keys)), places_in_all), places_in_all


def inverse_document_frequency(
    tokenized_set: TokenizedSet, roles: Sequence[str], vocabulary_size: int
) -> np.ndarray:
    """Ln(1 + N / n), `[vocabulary_size]` float64, for tokens that n of N texts contain."""
    # Of documents and training queries. A token without a text counts as if it had one, and so does
    # "unknown".
    texts, having = 0, np.zeros(vocabulary_size, np.int64)
    for role in roles:
        store = tokenized_set.tokens(role)
        counted = np.ones(len(store), bool)
        if role == "query":
            counted = tokenized_set.retrieval_set.splits == SPLITS.index("train")
        texts += int(counted.sum())
        having += texts_with(store, counted, vocabulary_size)
    having[UNKNOWN_ID] = 1
    return np.log1p(texts / np.maximum(having, 1))


def texts_with(store: RaggedStore, counted: np.ndarray, size: int) -> np.ndarray:
    """`[size]`, the number of `counted` rows that contain each value."""
    having = np.zeros(size, np.int64)
    for begin in range(0, len(store), _TEXTS_PER_CHUNK):
        rows = begin + np.flatnonzero(counted[begin : begin + _TEXTS_PER_CHUNK])
        ids, lengths = store.rows(rows)
        ids[ids >= size] = UNKNOWN_ID  # words outside the vocabulary, which have n-grams only
        pairs = np.repeat(rows, lengths) * size + ids
        having += np.bincount(np.unique(pairs) % size, minlength=size)
    return having
