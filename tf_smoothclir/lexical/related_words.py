"""Smoothing of tables over words of similar spelling, for languages that inflect.

A word that training pairs have once or never still looks like others: `walked` like `walks`, and
in Zulu or Basque most forms of a word are rare. So the expected counts of EM, c(w, t), are shared
among words of similar spelling before they become probabilities. With s from `similar_words`,

    c'(w, t) = c(w, t) + 0.1 Σ_w' s(w', w) c(w', t)                                query words
    c''(w, t) = c'(w, t) + 2 min(1, n_t) Σ_t' s(t, t') c'(w, t') / n_t          document words
    T(w | t) = c''(w, t) / Σ_w' c''(w', t)

where n_t = Σ_w Σ_t' s(t, t') c'(w, t'): the neighbours of a document word count together as much as
two occurrences of its own, so they decide about rare words and hardly touch frequent ones. This is
Dirichlet smoothing (MacKay and Peto 1995) with a prior of its own for each word.

The constants were chosen on validation queries of mdn-en-de, bible-en-fr and bible-en-tl, and of
Bibles in Zulu and Basque.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from tf_smoothclir.lexical.sparse_tables import entry_rows, kept_entries, unit_rows

QUERY_SHARE = 0.1
DOCUMENT_COUNT = 2.0
_SHORTEST, _LONGEST = 3, 5  # n-grams, in characters
_LEAST_COSINE = 0.3
_POWER = 4  # of the cosine: near neighbours count far more than distant ones
_MOST_WORDS = 1000  # an n-gram of more words says nothing, and costs most
_ROWS_AT_ONCE = 2000
_LEAST_SHARE = 0.002  # of a row of counts; what is below is most of the work, and of no use


def similar_words(words: Sequence[str]) -> sp.csr_array:
    """Similarity of the spelling of words.

    Two words are compared by the cosine of TF-IDF vectors of their n-grams of 3 to 5 characters,
    where the beginning and the end of a word count as one character each.

    Returns:
        `[words, words]` float32: cosine⁴ where the cosine is at least 0.3; 0 on the diagonal.
    """
    vectors = _ngram_vectors(words)
    frequency = np.bincount(vectors.indices, minlength=vectors.shape[1])
    # An n-gram that only one word has makes no two words alike.
    telling = sp.csr_array(vectors[:, np.flatnonzero((frequency > 1) & (frequency < _MOST_WORDS))])
    transposed = sp.csr_array(telling.T)
    parts = []
    # All cosines at once would not fit in memory: most are below the least, and go at once.
    for begin in range(0, len(words), _ROWS_AT_ONCE):
        part = sp.coo_array(telling[begin : begin + _ROWS_AT_ONCE] @ transposed)
        rows, columns = part.row, part.col
        kept = (part.data >= _LEAST_COSINE) & (rows + begin != columns)
        places = rows[kept], columns[kept]
        parts.append(sp.csr_array((part.data[kept] ** _POWER, places), shape=part.shape))
    if not parts:
        return sp.csr_array((0, 0), dtype=np.float32)
    return sp.csr_array(sp.vstack(parts, format="csr"))


def _ngram_vectors(words: Sequence[str]) -> sp.csr_array:
    """TF-IDF vectors of length 1, `[words, n-grams]` float32."""
    numbers: dict[str, int] = {}
    rows, columns = [], []
    for row, word in enumerate(words):
        for ngram in _ngrams(word):
            rows.append(row)
            columns.append(numbers.setdefault(ngram, len(numbers)))
    rarity = np.log(len(words) / np.bincount(columns, minlength=len(numbers))) if columns else []
    values = np.asarray(rarity, np.float32)[columns]
    vectors = sp.csr_array((values, (rows, columns)), shape=(len(words), len(numbers)))
    return unit_rows(vectors)


def _ngrams(word: str) -> set[str]:
    if len(word) < 2 or not any(map(str.isalpha, word)):
        return set()
    marked = f"\0{word}\1"  # so that "\0un" is a prefix, and "un" anywhere is not
    return {
        marked[begin : begin + length]
        for length in range(_SHORTEST, _LONGEST + 1)
        for begin in range(len(marked) - length + 1)
    }


def shared_counts(
    counts: sp.csr_array, similar_documents: sp.csr_array, similar_queries: sp.csr_array
) -> sp.csr_array:
    """Shares c(w, t), `[document words, query words]`, among similar words; see the module."""
    counts = _without_small_shares(counts)
    shared = _without_small_shares(counts + QUERY_SHARE * (counts @ similar_queries))
    parts = []
    for begin in range(0, counts.shape[0], _ROWS_AT_ONCE):  # most of each product is small shares
        rows = slice(begin, begin + _ROWS_AT_ONCE)
        # The module's Σ s(t, t') c'(w, t') and its row sums n_t.
        of_neighbours = similar_documents[rows] @ shared
        totals = np.asarray(of_neighbours.sum(axis=1)).ravel()
        # 2 min(1, n_t) / n_t: 2 / n_t, but never more than 2.
        scale = np.full_like(totals, DOCUMENT_COUNT)
        np.divide(DOCUMENT_COUNT, totals, out=scale, where=totals > 1)
        parts.append(_without_small_shares(shared[rows] + sp.diags_array(scale) @ of_neighbours))
    return sp.csr_array(sp.vstack(parts, format="csr"), dtype=np.float32)


def _without_small_shares(counts: sp.sparray) -> sp.csr_array:
    counts = sp.csr_array(counts)
    totals = np.asarray(counts.sum(axis=1)).ravel()
    return kept_entries(counts, counts.data >= _LEAST_SHARE * totals[entry_rows(counts)])
